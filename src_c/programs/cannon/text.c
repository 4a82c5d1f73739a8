/* Matrices in text files, as in the worksheet's base case: a line "ROWS COLUMNS", then a line for
 * each row. A rank must read such a file as a whole: where a row begins is not known until all rows
 * before it have been read. */
#include "cannon.h"
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 400, SHOWN = 40 };

int is_text(FILE *file)
{
    unsigned char first[MPILAB_HEADER_BYTES];
    const size_t got = fread(first, 1, sizeof first, file);
    rewind(file);
    return mpilab_is_text(first, got);
}

/* Blanks that don't end the line. */
static int skip_blanks(FILE *file)
{
    int next;
    do
        next = getc(file);
    while (next == ' ' || next == '\t' || next == '\r');
    return next;
}

/* The next word of the line, or "" at its end. Returns its length; `word` holds only the beginning
 * of a word that is too long for it. */
static size_t read_word(FILE *file, char word[static LONGEST_NUMBER])
{
    size_t length = 0;
    int next = skip_blanks(file);
    for (; next != EOF && !isspace(next); next = getc(file), length++)
        if (length < LONGEST_NUMBER - 1)
            word[length] = (char)next;
    ungetc(next, file); /* the end of a line counts as a word: "" */
    word[length < LONGEST_NUMBER ? length : LONGEST_NUMBER - 1] = '\0';
    return length;
}

/* Returns 0 if the word is not a number in ordinary notation: 0x10 and nan(123) are specific to
 * C. */
static int to_number(const char *word, size_t length, double *number)
{
    char *end;
    *number = strtod(word, &end);
    return end == word + length && strpbrk(word, "xX(") == NULL;
}

static void not_a_number(const char *path, long line, const char *word, long column, char *problem)
{
    mpilab_problem(problem, "%s:%ld: '%.*s' in column %ld is not a number; write e.g. 1.5", path,
                   line, SHOWN, word, column);
}

void read_text_header(const char *path, FILE *file, int header[2], char *problem)
{
    char word[LONGEST_NUMBER], *end;
    for (int i = 0; i < 2; i++) {
        read_word(file, word);
        const long number = strtol(word, &end, 10);
        header[i] = number > 0 && number <= INT_MAX && *end == '\0' ? (int)number : 0;
    }
    if (header[0] == 0 || header[1] == 0 || read_word(file, word) > 0)
        mpilab_problem(problem,
                       "%s:1: not the numbers of rows and columns of a matrix; write e.g. 16 16",
                       path);
}

/* A row on line `line`, and the end of its line. */
static void read_row(const char *path, FILE *file, long line, int columns, double *row,
                     char *problem)
{
    char word[LONGEST_NUMBER];
    size_t length;
    long numbers = 0;
    for (; (length = read_word(file, word)) > 0 && problem[0] == '\0'; numbers++) {
        double value;
        if (!to_number(word, length, &value))
            not_a_number(path, line, word, numbers + 1, problem);
        else if (numbers < columns)
            row[numbers] = value;
    }
    if (numbers != columns)
        mpilab_problem(problem,
                       "%s:%ld: a row of %ld numbers, in a matrix of %d columns; fix the line, or "
                       "the first one",
                       path, line, numbers, columns);
    getc(file);
}

void read_text_elements(const char *path, FILE *file, const int header[2], double *elements,
                        char *problem)
{
    char word[LONGEST_NUMBER];
    getc(file); /* the end of the first line */
    for (int i = 0; i < header[0] && problem[0] == '\0'; i++) {
        const int next = getc(file);
        if (next == EOF)
            mpilab_problem(problem,
                           "%s:%d: the file ends after %d of %d rows; it is truncated, or its "
                           "first line is wrong",
                           path, i + 2, i, header[0]);
        ungetc(next, file);
        read_row(path, file, i + 2L, header[1], elements + (size_t)i * (size_t)header[1], problem);
    }
    for (long line = header[0] + 2L; problem[0] == '\0' && !feof(file); line++) {
        if (read_word(file, word) > 0)
            mpilab_problem(problem,
                           "%s:%ld: '%.*s' follows the last of %d rows; remove it, or fix "
                           "the first line",
                           path, line, SHOWN, word, header[0]);
        getc(file);
    }
}
