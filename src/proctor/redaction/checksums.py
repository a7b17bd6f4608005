"""Check digits: whether a number can be what it looks like."""

from __future__ import annotations

# Verhoeff's tables: the group of a pentagon's turns and flips, and its permutation.
_TURNS = tuple(
    tuple(
        (a + b) % 5 + 5 * (b >= 5)
        if a < 5 and b < 5
        else (a + b) % 5 + 5
        if a < 5
        else (a - b) % 5 + 5
        if b < 5
        else (a - b) % 5
        for b in range(10)
    )
    for a in range(10)
)
_SHUFFLE = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
# What letters and digits of an Italian code are worth in odd places.
_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)
_MRZ_WEIGHTS = (7, 3, 1)


def luhn(digits: str) -> bool:
    """The check of cards and of Canadian insurance numbers.

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(map(int, digits[-1::-2])) + sum(n - 9 if n > 9 else n for n in doubled)
    return total % 10 == 0


def mod_97(iban: str) -> bool:
    """The check of an IBAN without spaces, in capitals.

    >>> mod_97("GB82WEST12345698765432"), mod_97("GB82WEST12345698765431")
    (True, False)
    """
    turned = iban[4:] + iban[:4]
    return int("".join(str(int(letter, 36)) for letter in turned)) % 97 == 1


def verhoeff(digits: str) -> bool:
    """The check of Indian Aadhaar numbers.

    >>> verhoeff("2363"), verhoeff("2364")
    (True, False)
    """
    check = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit)
        for _ in range(place % 8):
            number = _SHUFFLE[number]
        check = _TURNS[check][number]
    return check == 0


def cpf(digits: str) -> bool:
    """The two check digits of a Brazilian CPF.

    >>> cpf("52998224725"), cpf("52998224724"), cpf("11111111111")
    (True, False, False)
    """
    if len(set(digits)) == 1:
        return False
    for size in (9, 10):
        total = sum(int(digit) * (size + 1 - place) for place, digit in enumerate(digits[:size]))
        if total * 10 % 11 % 10 != int(digits[size]):
            return False
    return True


def dni(number: str) -> bool:
    """The letter of a Spanish DNI or NIE.

    >>> dni("12345678Z"), dni("X1234567L"), dni("12345678A")
    (True, True, False)
    """
    digits = number[:-1].translate(str.maketrans("XYZ", "012"))
    return _DNI_LETTERS[int(digits) % 23] == number[-1]


def nir(number: str) -> bool:
    """The key of a French social security number, of which Corsica has letters.

    >>> nir("255081416802538"), nir("255081416802539")
    (True, False)
    """
    body = number[:13].replace("2A", "19").replace("2B", "18")
    return (97 - int(body) % 97) == int(number[13:])


def codice_fiscale(code: str) -> bool:
    """The last letter of an Italian tax code.

    >>> codice_fiscale("RSSMRA85T10A562S"), codice_fiscale("RSSMRA85T10A562T")
    (True, False)
    """
    worth = [int(one) if one.isdigit() else ord(one) - ord("A") for one in code[:15]]
    total = sum(n if place % 2 else _ODD[n] for place, n in enumerate(worth))
    return chr(ord("A") + total % 26) == code[15]


def mrz(field: str, check: str) -> bool:
    """The check digit of a field in the machine-readable lines of a passport.

    >>> mrz("L898902C3", "6"), mrz("L898902C3", "7")
    (True, False)
    """
    total = sum(
        (0 if one == "<" else int(one, 36)) * _MRZ_WEIGHTS[place % 3]
        for place, one in enumerate(field)
    )
    return str(total % 10) == check
