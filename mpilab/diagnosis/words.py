"""Small words: lists of ranks, numbers with their nouns."""


def listing(items, joined="and"):
    """'1', '1 and 2', '1, 2 and 3'."""
    items = [str(item) for item in items]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {joined} {items[-1]}"


def runs(numbers, most=8):
    """'0 to 3, 5 and 7': each run of three or more in one; at most `most` of them."""
    numbers = sorted(set(numbers))
    spans = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = []
    for first, last in spans:
        if last - first >= 2:
            parts.append(f"{first} to {last}")
        else:
            parts += [str(number) for number in range(first, last + 1)]
    if len(parts) > most:
        return f"{', '.join(parts[:most])}, … ({len(numbers)} in all)"
    return listing(parts)


def ranks(numbers):
    """'rank 2', 'ranks 0 and 2', 'ranks 0 to 3'."""
    numbers = set(numbers)
    return f"rank{'s' * (len(numbers) != 1)} {runs(numbers)}"


def number(count, noun, plural=""):
    """'1 message', '3 messages', '2 copies'."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def capital(sentence):
    """With a capital letter in front."""
    return sentence[:1].upper() + sentence[1:]
