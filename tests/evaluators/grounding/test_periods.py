"""hallucination_detection compares the amounts of each year, month, quarter and rank."""

from __future__ import annotations

from tests.evaluators.test_changed_facts import score
from tests.tables import each_row

YEARS = "In 2019 revenue was 5 million, in 2020 7 million."
REVERSED = "Revenue was 5 million in 2019 and 7 million in 2020."
SENTENCES = "In 2019, revenue was $5 million. In 2020, it rose to $7 million."
SALES = "In the first quarter the firm sold 120 cars, in the second quarter 150."
HOURS = "The shop opens at 9 on Monday and at 11 on Tuesday."
MONTHS = "In May 300 visitors came, and in June 450 visitors came."
PAIRED = "Revenue was 5 million and 7 million in 2019 and 2020, respectively."
RATES = "Unemployment was 8% in 2019, 9% in 2020 and 7% in 2021."
PRIZES = "The 1st prize is 500 euros and the 2nd prize is 200 euros."
MUSEUM = "The museum with 12 rooms opened in 1963 and sold 500 tickets in 1964."
PEOPLE = "In 2019 Ann earned 5 million and Bob 7 million; in 2020 Ann earned 7 million and Bob 9 million."
AGAIN = "In 2019 revenue was 5 million. In 2020 it was 7 million. Profit was 7 million in 2019."
GROWTH = "Sales grew 5 percent in 2019 and 7 percent in 2020."
STORES = "The company opened in 2010. It had 20 stores in 2010 and has 300 stores in 2024."
QUARTERS = "Q1 profit was 3.1 million; Q2 profit was 4.2 million."


@each_row(
    ("context", "changed"),
    [
        (YEARS, "In 2019 revenue was 7 million."),
        (YEARS, "Revenue was 5 million in 2020."),
        (YEARS, "In 2019 revenue was 7 million, in 2020 5 million."),
        (REVERSED, "In 2019, revenue was 7 million."),
        (REVERSED, "Revenue rose from 7 million in 2019 to 5 million in 2020."),
        (SENTENCES, "Revenue was $7 million in 2019."),
        (SENTENCES, "In 2020, revenue was $5 million."),
        (SALES, "In the first quarter the firm sold 150 cars."),
        (SALES, "The firm sold 120 cars in the second quarter."),
        (HOURS, "The shop opens at 11 on Monday."),
        (HOURS, "On Tuesday the shop opens at 9."),
        (MONTHS, "In May 450 visitors came."),
        (PAIRED, "Revenue was 7 million in 2019."),
        (RATES, "Unemployment was 9% in 2019."),
        (RATES, "In 2021 unemployment was 8%."),
        (PRIZES, "The second prize is 500 euros."),
        (PRIZES, "The first prize is 200 euros."),
        (QUARTERS, "Q1 profit was 4.2 million."),
    ],
)
def test_the_amount_of_another_period_fails(context: str, changed: str) -> None:
    """The context has the amount for another period, and another amount for this one."""
    assert score(changed, context).passed is False


@each_row(
    ("context", "same"),
    [
        (YEARS, "In 2019 revenue was 5 million."),
        (YEARS, "Revenue was 5 million in 2019, and 7 million a year later."),
        (REVERSED, "Revenue rose from 5 million in 2019 to 7 million in 2020."),
        (REVERSED, "In 2020 revenue rose to 7 million from 5 million."),
        (REVERSED, "In 2020, revenue rose to 7 million from 5 million in 2019."),
        (REVERSED, "Before 2020, revenue was 5 million."),
        (REVERSED, "Revenue grew between 2019 and 2020 from 5 million to 7 million."),
        (SENTENCES, "In 2020 revenue was $7 million, up from $5 million in 2019."),
        (SALES, "In the first quarter, 120 cars were sold, in the second 150."),
        (HOURS, "On Monday the shop opens at 9."),
        (MONTHS, "300 visitors came in May."),
        (PAIRED, "In 2020 revenue was 7 million."),
        (RATES, "Unemployment fell to 7% in 2021 from 9% in 2020."),
        (RATES, "Unemployment was 8% in 2019 and 7% in 2021."),
        (PRIZES, "The first prize is 500 euros."),
        (MUSEUM, "The museum with 12 rooms sold 500 tickets in 1964."),
        (PEOPLE, "In 2019 Bob earned 7 million."),
        (AGAIN, "In 2019 profit was 7 million."),
        (QUARTERS, "Profit rose from 3.1 million in Q1 to 4.2 million in Q2."),
        (GROWTH, "Sales grew 7 percent over 2019."),
        (GROWTH, "Compared with 2019, sales grew 7 percent."),
        (GROWTH, "Sales grew 7 percent versus 2019."),
        (GROWTH, "Unlike in 2019, sales grew 7 percent."),
        (GROWTH, "Sales grew 7 percent, up on 2019."),
        (STORES, "The company that opened in 2010 has 300 stores."),
    ],
)
def test_other_words_for_the_same_amounts_pass(context: str, same: str) -> None:
    """Another order, a span of time, an amount of something else and a second passage are no exchange."""
    assert score(same, context).passed is True
