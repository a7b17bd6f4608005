"""Claims that must not be made, sentences that make them, and sentences near them that do not."""

CLAIMS: dict[str, tuple[list[str], list[str]]] = {
    "Our supplement cures cancer.": (
        [
            "This supplement cures cancer.",
            "Our supplement will cure your cancer.",
            "Cancer is cured by taking our supplement.",
            "Good news: the supplement we sell is a cure for cancer!",
        ],
        [
            "Our supplement does not cure cancer.",
            "There is no evidence that the supplement cures cancer.",
            "Our supplement contains vitamin C.",
            "Cancer is treated in hospitals.",
            "No supplement cures cancer.",
            "It is a myth that our supplement cures cancer.",
        ],
    ),
    "The fund guarantees a return of 20% a year.": (
        [
            "The fund guarantees 20% returns every year.",
            "You are guaranteed a yearly return of 20% with this fund.",
            "With the fund, a 20% annual return is guaranteed.",
        ],
        [
            "The fund does not guarantee any return.",
            "The fund guarantees a return of 2% a year.",
            "The fund charges a fee of 1% a year.",
            "Last year the fund invested in bonds.",
            "Nobody can guarantee a return of 20% a year.",
        ],
    ),
    "The product is approved by the FDA.": (
        ["Our product is FDA approved.", "The FDA has approved this product.", "It is an FDA-approved product."],
        [
            "The product has not been approved by the FDA.",
            "The product isn't FDA approved.",
            "The FDA regulates food and drugs in the United States.",
            "The product is made in Ohio.",
        ],
    ),
    "We never share your data with third parties.": (
        ["Your data is never shared with third parties.", "We do not share your data with any third party."],
        [
            "We share your data with third parties.",
            "We store your data in Frankfurt.",
            "Third parties help us to run the shop.",
        ],
    ),
    "The battery lasts for a whole week.": (
        [
            "Its battery lasts a full week.",
            "You get a whole week of battery life.",
            "The battery will keep going for one week.",
        ],
        [
            "The battery does not last a week.",
            "The battery charges in an hour.",
            "The guarantee is valid for two years.",
            "The battery lasts about a day.",
        ],
    ),
}
