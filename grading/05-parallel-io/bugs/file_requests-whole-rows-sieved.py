# Fault: the span of sieving is all bytes of its rows.
def file_requests(method, N, R, C, buffer, A):
    fits = max(1, buffer // 8)
    if method == "rank 0":
        elements = [N * N]
    elif method == "two-phase":
        elements = [N * N // A + (a < N * N % A) for a in range(A)]
    else:
        rows, columns = -(-N // R), -(-N // C)
        parts = [
            (min(rows, N - i), min(columns, N - j))
            for i in range(0, N, rows)
            for j in range(0, N, columns)
        ]
        elements = [h * N if method == "sieving" else h * w for h, w in parts]
    requests = [-(-count // fits) for count in elements]
    if method == "strided":
        requests = [h for h, _ in parts]
    if method == "view":
        requests = [1] * len(parts)
    return max(requests), sum(requests), 8 * sum(elements)
