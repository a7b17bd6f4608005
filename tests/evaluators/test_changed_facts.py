"""hallucination_detection finds one changed fact among many equal words."""

from __future__ import annotations

from typing import Any

from proctor.evaluators.text.quality import hallucination_detection
from proctor.records.fields.context import FieldContext
from proctor.records.score import Score
from tests.tables import each_row


def score(output: str, context: Any, **options: Any) -> Score:
    """The score of an output by the local method, for its context."""
    check = hallucination_detection(**({"embedder": "lexical"} | options))
    found: Score = check(output, None, FieldContext("output", {"context": context}))
    return found


# A context, a sentence that rests on it, and one that changes a single fact.
CHANGED = [
    ("It was -5 degrees in Oslo at noon.", "At noon it was -5 degrees.", "It was 5 degrees."),
    ("It was 5 degrees in Oslo at noon.", "At noon it was 5 degrees.", "It was −5 degrees."),
    ("The bridge opened in May.", "In May the bridge opened.", "The bridge opened in June."),
    ("The bridge opened in June.", "In June the bridge opened.", "The bridge opened in May."),
    ("The hall is shut on Monday.", "On Monday it is shut.", "The hall is shut on Friday."),
    ("The EU approved the vaccine.", "The EU approved it.", "The WHO approved the vaccine."),
    ("The WHO approved the vaccine.", "The WHO approved it.", "The EU approved the vaccine."),
    ("It earned 5 million dollars.", "It earned 5 million.", "It earned 5 billion dollars."),
    ("Turn left at the church.", "At the church turn left.", "Turn right at the church."),
    ("The shop opens at 9 am.", "It opens at 9 a.m.", "The shop opens at 9 pm."),
    ("A ticket costs $12.", "A ticket costs 12 dollars.", "A ticket costs €12."),
    ("Sales rose by 3 percent.", "Sales rose by 3%.", "Sales fell by 3 percent."),
    ("The rate rose by 2 percentage points.", "It rose by 2 percentage points.", "It rose by 2%."),
    ("The tower is 300 metres tall.", "It is 300 metres tall.", "It is 300 feet tall."),
    ("He finished first in Rome.", "In Rome he finished first.", "He finished third in Rome."),
    ("She founded the school in 1950.", "In 1950 she founded it.", "He founded the school."),
    ("It lies in the north of Spain.", "It lies in the north.", "It lies in the south of Spain."),
    ("The trip took 3 hours by car.", "It took 3 hours.", "The trip took 3 days by car."),
    ("The bridge is 120 m long.", "It is 120 metres long.", "The bridge is 120 km long."),
    ("The bridge is 120 m long.", "It is 120 m long.", "The bridge is 120 feet long."),
    ("Take 5 mg per day.", "Take 5 milligrams per day.", "Take 5 g per day."),
    ("Take 5mg per day.", "Take 5 mg per day.", "Take 5 kg per day."),
    ("It is -5 degrees. It costs 5 euros.", "It is -5 degrees.", "It is 5 degrees."),
    ("It fell to -5. A trip is 5 km.", "It fell to -5.", "It fell to 5."),
    ("The bridge is 120 m long, the road 3 km.", "The road is 3 km.", "The bridge is 120 km long."),
    ("It lasts 30 seconds.", "It lasts 30 sec.", "It lasts 30 minutes."),
    ("He came second in Rome.", "In Rome he came second.", "He came first in Rome."),
    ("The bridge opened in 1998.", "In 1998 the bridge opened.", "The bridge closed in 1998."),
    ("Patients under 12 may enter.", "Those under 12 may enter.", "Patients over 12 may enter."),
    ("Stop it before the pump starts.", "Stop it before it starts.", "Stop it after it starts."),
    ("This drug is safe.", "The drug is safe.", "This drug is unsafe."),
    ("This drug is unsafe.", "The drug is unsafe.", "This drug is safe."),
    ("The pump is reliable.", "It is reliable.", "The pump is unreliable."),
    ("The report is complete.", "It is complete.", "The report is incomplete."),
    ("The change is irreversible.", "It is irreversible.", "The change is reversible."),
    ("A return is possible.", "It is possible to return.", "A return is impossible."),
    ("The paint is non-toxic.", "It is non-toxic.", "The paint is toxic."),
    ("They agree with the plan.", "They agree.", "They disagree with the plan."),
    ("It is above the limit.", "The limit: it is above.", "It is below the limit."),
    ("Smoking is allowed here.", "Smoking is allowed.", "Smoking is prohibited here."),
    ("This drug is safe.", "The drug is safe.", "This drug is dangerous."),
    ("It earned 5 million dollars.", "It earned 5 million dollars.", "It earned 5 dollars."),
    ("It earned $5 million.", "It earned 5 million dollars.", "It earned $5."),
    ("Sales rose by 5%.", "Sales rose by 5 percent.", "Sales rose by 5."),
    ("It takes up to 3 days.", "It takes up to 3 days.", "It takes at least 3 days."),
    ("It costs more than $300.", "It costs over $300.", "It costs less than $300."),
    ("The door is locked.", "It is locked.", "The door is unlocked."),
    ("It made a profit of 5 million.", "It made a profit.", "It made a loss of 5 million."),
    ("His wife wrote the book.", "The book was written by his wife.", "His husband wrote the book."),
    ("The lake is the largest in Asia.", "It is the largest in Asia.", "It is the smallest in Asia."),
    ("The cyclist rode at 20 km/h.", "He rode at 20 km/h.", "The cyclist rode at 20 mph."),
    ("The ship sails at 20 knots.", "It sails at 20 knots.", "The ship sails at 20 mph."),
    ("The car uses 5 l/100 km.", "It uses 5 litres per 100 kilometres.", "The car uses 5 mpg."),
    ("The patient takes 50 mg per day.", "The patient takes 50 mg daily.", "The patient takes 50 mg per week."),
    ("The rent is $900 per month.", "The rent is $900 a month.", "The rent is $900 per week."),
    ("He earns $25 an hour.", "He earns $25 per hour.", "He earns $25 a day."),
    (
        "Refunds are possible within 30 days.",
        "Refunds are possible up to 30 days.",
        "Refunds are possible after 30 days.",
    ),
    ("The shop is open from 9 am.", "It is open from 9 am.", "The shop is open until 9 am."),
    ("The pool is closed until 6 pm.", "It is closed until 6 pm.", "The pool is closed from 6 pm."),
    ("Reply by March 10.", "Reply by 10 March.", "Reply after March 10."),
    ("The offer ends before 5 May.", "It ends before 5 May.", "The offer ends after 5 May."),
    ("She was born in Berlin and died in Rome.", "She died in Rome.", "She was born in Rome and died in Berlin."),
    ("Olsen coached Brann and played for Lyn.", "He played for Lyn.", "Olsen coached Lyn and played for Brann."),
    ("Anna Berg founded it in Oslo.", "Berg founded it in Oslo.", "Anna Berg founded it in Bergen."),
    ("All members voted for the plan.", "Every member voted for the plan.", "Most members voted for the plan."),
    ("Some members voted for the plan.", "Some members voted for it.", "All members voted for the plan."),
    ("The mayor was acquitted in May.", "In May he was acquitted.", "The mayor was convicted in May."),
    ("The course is for adults.", "It is for adults.", "The course is for children."),
    ("It is open from 10 am to 6 pm.", "It is open from 10:00 to 18:00.", "It is open from 10 pm to 6 am."),
    ("The bar is open from 6 pm to 2 am.", "It is open from 18:00 to 2:00.", "The bar is open from 6 am to 2 pm."),
    ("The shop opens at 9:30 am.", "The shop opens at 9:30.", "The shop opens at 9 am."),
    ("Admission is 120 kronor.", "Admission costs 120 SEK.", "Admission is 120 euros."),
    ("A ticket costs 50 zloty.", "A ticket is 50 zloty.", "A ticket costs 50 lira."),
    ("Take the tablet twice a day.", "Take the tablet twice daily.", "Take the tablet once a day."),
    ("The board meets three times a year.", "It meets three times a year.", "The board meets twice a year."),
    ("The fee is 20 euros per room.", "The fee per room is 20 euros.", "The fee is 20 euros per person."),
    ("It flows from north to south.", "It flows to the south from the north.", "It flows from south to north."),
    (
        "Admission is 120 kronor for adults, free for children.",
        "Admission is free for children.",
        "Admission is free for adults.",
    ),
    (
        "On Thursdays open until 8 pm, on other days until 6 pm.",
        "On Thursdays it is open until 20:00.",
        "On Thursdays the museum is open until 6 pm.",
    ),
]


@each_row(
    ("context", "output"),
    [
        ("The museum is open from 10 am to 6 pm.", "On weekdays, the museum is open from 10:00 to 18:00."),
        ("The shop opens at 10 am.", "It opens at 10:00."),
        ("The museum is open from 10 am to 6 pm.", "The museum is open from 10:00 am to 6:00 pm."),
        ("The museum is open from 10:00 to 18:00.", "The museum is open from 10 am to 6 pm."),
        ("The office is open from 9 am to 5:30 pm.", "The office is open from 09:00 to 17:30."),
        ("The office is open from 9 am to 5:30 pm.", "The office is open from 9:00 to 5:30."),
        ("The office is open 9-5:30 pm.", "The office is open until 17:30."),
        ("The office is open from 9 to 11 am.", "The office is open from 9:00 to 11:00."),
        ("The train leaves at 12:15 am.", "The train leaves at 00:15."),
        ("The train leaves at 8 p.m. It stops in Lund.", "It stops in Lund. The train leaves at 8pm."),
        ("The store closes at 9 pm.", "The store closes at 9."),
        ("The store closes at 9 pm.", "The store closes at 9 in the evening."),
        ("The office is open from 9 am to 5 pm.", "The office is open from 9 to 5."),
        ("Take the tablet twice a day.", "Take the tablet daily."),
        ("Take the tablet once a day.", "Take one tablet every day."),
        ("The fee is 20 euros per guest.", "The fee is 20 euros per person."),
        ("Admission is free for adults and children.", "Admission is free for children."),
        ("Admission is 120 kronor for adults, free for children.", "Children get in free, adults pay 120 kronor."),
        ("It runs from north to south and from south to north.", "It runs from south to north."),
    ],
)
def test_another_way_to_write_a_time_a_frequency_or_a_price_passes(context: str, output: str) -> None:
    """Times are compared with 24 hours, and frequencies by how often something happens in a year."""
    assert score(output, context).passed is True


@each_row(("context", "same", "changed"), CHANGED)
def test_a_changed_sign_unit_month_name_or_opposite_does_not_pass(context: str, same: str, changed: str) -> None:
    """The sentence with the right fact has a higher value."""
    wrong = score(changed, context)
    assert (wrong.status, wrong.passed) == ("ok", False)
    stored = score(same, context)
    assert stored.value is not None
    assert wrong.value is not None
    assert stored.value > wrong.value


def test_a_comparison_may_name_both_words_of_a_pair() -> None:
    """ "left, not right" has not exchanged them."""
    compared = score("Left, rather than right, at the church.", "Turn left at the church.")
    assert compared.details["sentences"][0]["wrong"] is False
    assert score("She may open it.", "She may open it on Monday.").passed is True


@each_row(
    ("context", "output"),
    [
        ("The drug is unsafe.", "The drug is not safe."),
        ("The drug is not unsafe.", "The drug is safe."),
        ("Some drugs are safe, others are unsafe.", "Some drugs are unsafe."),
        ("It found between 5 and 6 million birds.", "It found 5 to 6 million birds."),
        ("It takes no more than 3 days.", "It takes at most 3 days."),
        ("It takes no less than 3 days.", "It takes at least 3 days."),
        ("They uncovered the cover of a tomb.", "They uncovered a tomb."),
        ("The port lives on the import of coal.", "The port lives on coal."),
    ],
)
def test_a_paraphrase_with_a_prefix_a_magnitude_or_a_bound_is_not_a_change(context: str, output: str) -> None:
    """What says the same in other words is not called an opposite."""
    found = score(output, context)
    assert "(not " not in found.reason, found.reason


@each_row(
    ("context", "output"),
    [
        ("The meeting is on 5 June 2024.", "The meeting is on 2024-06-05."),
        ("The log says 2023-11-02.", "The log says 2 November 2023."),
        ("The office closes at 3 pm.", "The office closes at 15:00."),
        ("The party was in Warsaw at 20:30.", "The party in Warsaw was at 8:30 pm."),
        ("The race took 15:30.", "The race took 15 minutes and 30 seconds."),
        ("The cyclist rode at 20 km/h.", "The cyclist rode at 20 kilometers per hour."),
        ("The car drives 60 mph.", "The car drives 60 miles per hour."),
        ("Wind speeds reached 120 km/h (75 mph).", "Winds reached 75 mph."),
        ("The flat costs $900 per month and $30 per week for heating.", "Heating costs $30 per week."),
        ("Refunds are possible within 30 days.", "Refunds are possible for up to 30 days."),
        ("After 1990 the town grew. Before 1990 it was small.", "The town grew after 1990."),
        ("The war lasted from 1939 to 1945.", "The war lasted until 1945."),
        ("He served as mayor from 1990 until 1995.", "He was mayor from 1990 to 1995."),
        ("She was born in Berlin and died in Rome.", "She died in Rome and was born in Berlin."),
        ("Alice was hired by Bob and trained by Carl.", "Carl trained Alice, and Bob hired her."),
        ("Tom works for Acme in Oslo.", "Tom works in Oslo for Acme."),
        ("Anna Berg founded the firm in Oslo.", "The Bergs founded the firm in Oslo."),
        ("The German firm sells cars in Italy.", "The firm from Germany sells cars in Italy."),
        ("Many students like the new hall.", "Some students like the new hall."),
        ("Each room has a balcony.", "All rooms have a balcony."),
        ("All rooms have a balcony. Some rooms have a bath.", "Some rooms have a bath."),
        ("The court convicted two men and acquitted a third.", "Two men were convicted."),
    ],
)
def test_another_form_of_a_rate_limit_time_place_or_share_passes(context: str, output: str) -> None:
    found = score(output, context)
    assert found.passed is True, found.reason
