/* The file of C appears whole or not at all: it is written next to its final place, under a unique
 * name, and renamed at the end.
 *
 *   C is             written as                   becomes
 *   folder/c         folder/c.part.Xy1zW3         folder/c, with the mode that it had
 *   a link to it     folder/c.part.Xy1zW3         folder/c, and the link stays
 *
 * If the run ends before that, with a problem, Ctrl-C or an abort on any rank, the file is removed;
 * this is why all ranks know its name. Only SIGKILL leaves no time for it: if there is a directory
 * for a report, a link there leads to the file, so that mpilab/mpiio/cannon.py can remove it.
 *
 * Disk space is reserved before anything is computed. Not every MPI library reports a write to a
 * full disk: Open MPI 5.0.11 counts all of it as written.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cannon.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What discard_output has to remove; "" for nothing. */
static char claimed[sizeof((struct files *)NULL)->part];

static void discard_and_end(int number)
{
    discard_output();
    signal(number, SIG_DFL);
    raise(number);
}

/* The final length of the file. */
static off_t bytes_of_output(const struct sizes *sizes)
{
    return MPILAB_HEADER_BYTES + (off_t)sizes->rows * sizes->columns * (off_t)sizeof(double);
}

/* Returns an errno. It is not an error if a file system cannot reserve space. */
static int reserve(int file, off_t bytes)
{
#ifdef __linux__
    const int error = posix_fallocate(file, 0, bytes);
    return error == EOPNOTSUPP || error == EINVAL ? 0 : error;
#else
    (void)file, (void)bytes;
    return 0;
#endif
}

/* The mode of a new file. */
static mode_t usual_mode(void)
{
    const mode_t masked = umask(0);
    umask(masked);
    return 0666 & ~masked;
}

/* Where C goes, and with which mode. */
static void find_target(struct files *files, char *problem)
{
    struct stat found;
    files->mode = usual_mode();
    if (lstat(files->c, &found) != 0) {
        snprintf(files->target, sizeof files->target, "%s", files->c);
        return;
    }
    if (realpath(files->c, files->target) == NULL || stat(files->target, &found) != 0)
        mpilab_problem(problem,
                       "%s: is a link that leads nowhere: %s; give the name of a file for C",
                       files->c, strerror(errno));
    else if (!S_ISREG(found.st_mode))
        mpilab_problem(problem, "%s: is %s; give the name of a file for C", files->c,
                       S_ISDIR(found.st_mode) ? "a directory" : "no usual file");
    else
        files->mode = found.st_mode & 0777;
}

static void leave_link(const struct files *files, char *problem)
{
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%s/unfinished", files->directory);
    unlink(link); /* of an earlier run */
    if (symlink(files->part, link) != 0)
        mpilab_problem(problem, "%s: cannot be made: %s; name a folder that you own", link,
                       strerror(errno));
}

/* On rank 0: create the file, and prepare to be terminated. */
static void make_file(struct files *files, char *problem)
{
    find_target(files, problem);
    if (problem[0] != '\0')
        return;
    snprintf(files->part, sizeof files->part, "%s.part.XXXXXX", files->target);
    const int file = mkstemp(files->part);
    if (file < 0) {
        mpilab_problem(problem, "%s: cannot be written: %s; name an existing folder that you own",
                       files->c, strerror(errno));
        return;
    }
    close(file);
    strcpy(claimed, files->part);
    signal(SIGTERM, discard_and_end); /* what mpirun sends */
    signal(SIGINT, discard_and_end);
    signal(SIGHUP, discard_and_end);
    if (files->directory != NULL)
        leave_link(files, problem);
}

int claim_output(struct files *files, const struct grid *grid, char *problem)
{
    if (grid->rank == 0)
        make_file(files, problem);
    if (mpilab_agree(grid->comm, problem))
        return 1;
    MPI_Bcast(files->part, sizeof files->part, MPI_CHAR, 0, grid->comm);
    strcpy(claimed, files->part);
    return 0;
}

void reserve_output(struct files *files, const struct sizes *sizes, char *problem)
{
    files->bytes = bytes_of_output(sizes);
    const int file = open(files->part, O_WRONLY);
    const int error = file < 0 ? errno : reserve(file, files->bytes);
    if (error != 0)
        mpilab_problem(problem, "%s: no room for %lld bytes: %s; free some, or take another disk",
                       files->c, (long long)files->bytes, strerror(error));
    if (file >= 0)
        close(file);
}

void finish_output(const struct files *files, char *problem)
{
    struct stat found;
    /* If no space could be reserved, a full disk shows only now. */
    if (stat(files->part, &found) != 0 || found.st_size != files->bytes)
        mpilab_problem(problem, "%s: did not become %lld bytes long; is there room on the disk?",
                       files->c, (long long)files->bytes);
    else if (chmod(files->part, files->mode) != 0 || rename(files->part, files->target) != 0)
        mpilab_problem(problem, "%s: cannot be put in its place: %s", files->c, strerror(errno));
}

void discard_output(void)
{
    unlink(claimed);
}
