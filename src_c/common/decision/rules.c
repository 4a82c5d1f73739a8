/* Reading rules, and applying them to a call. */
#include "rules.h"
#include "../topology/topology.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int key = MPI_KEYVAL_INVALID;

/* The quantities that conditions compare. */
struct situation {
    long long ranks, ppn, nodes, groups, bytes, total, dealt;
};

static int forget(MPI_Comm comm, int comm_key, void *text, void *extra)
{
    (void)comm, (void)comm_key, (void)extra;
    free(text);
    return MPI_SUCCESS;
}

/* The whole file, ended by '\0', or NULL. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    char *text = NULL;
    long bytes = -1;
    if (fseek(file, 0, SEEK_END) == 0)
        bytes = ftell(file);
    if (bytes >= 0 && fseek(file, 0, SEEK_SET) == 0)
        text = malloc((size_t)bytes + 1);
    if (text != NULL && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(text);
        text = NULL;
    }
    if (text != NULL)
        text[bytes] = '\0';
    fclose(file);
    return text;
}

/* Rank 0's rules, on all ranks: an empty string if it has none. */
static int share_rules(MPI_Comm comm, char **rules)
{
    int rank, bytes = 1;
    char *text = NULL;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        const char *path = getenv("MPILAB_RULES");
        text = path == NULL || *path == '\0' ? calloc(1, 1) : read_file(path);
        bytes = text == NULL ? -1 : (int)strlen(text) + 1;
    }
    int err = MPI_Bcast(&bytes, 1, MPI_INT, 0, comm);
    if (err == MPI_SUCCESS && bytes < 0)
        return MPI_ERR_FILE;
    if (rank != 0)
        text = malloc((size_t)bytes);
    if (err == MPI_SUCCESS)
        err = text == NULL ? MPI_ERR_NO_MEM : MPI_Bcast(text, bytes, MPI_CHAR, 0, comm);
    if (err != MPI_SUCCESS)
        free(text);
    else
        *rules = text;
    return err;
}

static struct situation situation_of(const struct mpilab_topology *topology, long long bytes)
{
    struct situation found = {topology->size,         0, topology->nodes, topology->groups, bytes,
                              bytes * topology->size, 0};
    for (int node = 0; node < topology->nodes; node++) {
        const int ranks = topology->node_begin[node + 1] - topology->node_begin[node];
        if (ranks > found.ppn)
            found.ppn = ranks;
    }
    for (int rank = 0; rank < topology->size; rank++)
        if (topology->order[rank] != rank)
            found.dealt = 1;
    return found;
}

static const long long *value_of(const struct situation *situation, const char *name, size_t length)
{
    const struct {
        const char *name;
        const long long *value;
    } known[] = {
        {"ranks", &situation->ranks},   {"ppn", &situation->ppn},     {"nodes", &situation->nodes},
        {"groups", &situation->groups}, {"bytes", &situation->bytes}, {"total", &situation->total},
        {"dealt", &situation->dealt},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0)
            return known[i].value;
    return NULL;
}

/* Does the condition in `word` hold? 1 or 0; -1 if it is not a condition. */
static int holds(const char *word, size_t length, const struct situation *situation)
{
    const size_t name = strcspn(word, "<>");
    if (name >= length)
        return -1;
    const int at_least = word[name] == '>';
    const char *number = word + name + (at_least ? 2 : 1);
    const long long *value = value_of(situation, word, name);
    if (value == NULL || (at_least && word[name + 1] != '=') || !isdigit((unsigned char)*number))
        return -1;
    char *rest;
    const long long limit = strtoll(number, &rest, 10);
    if (rest != word + length)
        return -1;
    return at_least ? *value >= limit : *value < limit;
}

/* The next word of a line, and its length; 0 at its end. */
static size_t next_word(const char **line)
{
    *line += strspn(*line, " \t\r");
    return strcspn(*line, " \t\r\n#");
}

/* Apply one line: 1 if it decides, 0 if it does not, -1 if it is not a rule. */
static int apply(const char *line, const char *collective, const struct situation *situation,
                 char kernel[MPILAB_KERNEL_NAME])
{
    size_t length = next_word(&line);
    if (length == 0)
        return 0;
    const int is_ours = strlen(collective) == length && strncmp(line, collective, length) == 0;
    int decides = is_ours;
    for (line += length; (length = next_word(&line)) > 0; line += length) {
        const char *after = line + length;
        if (next_word(&after) == 0) { /* the last word is the kernel */
            if (length >= MPILAB_KERNEL_NAME)
                return -1;
            if (decides)
                snprintf(kernel, MPILAB_KERNEL_NAME, "%.*s", (int)length, line);
            return decides;
        }
        const int held = holds(line, length, situation);
        if (held < 0)
            return -1;
        decides = decides && held;
    }
    return -1;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* Is every line a rule, a comment or empty? */
static int are_rules(const char *text)
{
    const struct situation any = {0, 0, 0, 0, 0, 0, 0};
    char kernel[MPILAB_KERNEL_NAME];
    for (const char *line = text; *line != '\0'; line = next_line(line))
        if (apply(line, "", &any, kernel) < 0)
            return 0;
    return 1;
}

static int rules_of(MPI_Comm comm, char **rules)
{
    int err = MPI_SUCCESS, found = 0;
    if (key == MPI_KEYVAL_INVALID)
        err = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_get_attr(comm, key, rules, &found);
    if (err != MPI_SUCCESS || found)
        return err;
    err = share_rules(comm, rules);
    if (err != MPI_SUCCESS)
        return err;
    err = are_rules(*rules) ? MPI_Comm_set_attr(comm, key, *rules) : MPI_ERR_FILE;
    if (err != MPI_SUCCESS)
        free(*rules);
    return err;
}

int mpilab_choose(const char *collective, long long bytes, MPI_Comm comm,
                  char kernel[MPILAB_KERNEL_NAME])
{
    const struct mpilab_topology *topology;
    char *rules;
    int err = mpilab_topology_of(comm, &topology);
    if (err == MPI_SUCCESS)
        err = rules_of(comm, &rules);
    if (err != MPI_SUCCESS)
        return err;
    const struct situation situation = situation_of(topology, bytes);
    *kernel = '\0';
    for (const char *line = rules; *line != '\0'; line = next_line(line))
        if (apply(line, collective, &situation, kernel) > 0)
            break;
    return MPI_SUCCESS;
}

int mpilab_choose_kernel(const char *collective, long long bytes, MPI_Comm comm,
                         const struct mpilab_choice *choices, void (**kernel)(void))
{
    char name[MPILAB_KERNEL_NAME];
    const int err = mpilab_choose(collective, bytes, comm, name);
    if (err != MPI_SUCCESS)
        return err;
    *kernel = choices[0].kernel;
    if (*name == '\0')
        return MPI_SUCCESS;
    while (choices->name != NULL && strcmp(choices->name, name) != 0)
        choices++;
    *kernel = choices->kernel;
    return *kernel == NULL ? MPI_ERR_ARG : MPI_SUCCESS;
}
