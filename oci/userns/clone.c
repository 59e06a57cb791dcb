#define _GNU_SOURCE
#include "clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

// A user namespace is made by a process of one thread, which this is not, and
// belongs to the effective user of that process. So a first child, which shares
// the memory but not the credentials, takes the owner's id and makes a second
// one in the new namespaces, which waits to be killed.
//
// Both share the caller's thread-local storage: they do nothing but system
// calls, and the caller reads errno only of its own.

#define STACK (16 * 1024)

struct job {
	unsigned owner;
	int flags;
	pid_t parent;
	int hold; // read end of a pipe that nobody writes to
	char *stack;
	volatile pid_t child;
	volatile int failed; // errno
};

static int wait_for_kill(void *arg)
{
	struct job *j = arg;
	char c;
	// Should the caller be killed meanwhile, nobody else may be left holding
	// its open files, which are its locks too.
	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (syscall(SYS_getppid) != j->parent)
		syscall(SYS_exit, 1);
	while (syscall(SYS_read, j->hold, &c, 1) < 0)
		;
	syscall(SYS_exit, 0);
	return 0;
}

static int make_as_owner(void *arg)
{
	struct job *j = arg;
	// The capabilities stay, and so do the other two ids: no process of the
	// owner may signal this one.
	if (syscall(SYS_prctl, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0 ||
	    syscall(SYS_setresuid, -1, j->owner, -1) < 0) {
		j->failed = errno;
		return 1;
	}
	pid_t child = clone(wait_for_kill, j->stack, CLONE_VM | CLONE_PARENT | j->flags, j);
	if (child < 0) {
		j->failed = errno;
		return 1;
	}
	j->child = child;
	return 0;
}

static pid_t reap(pid_t pid)
{
	pid_t got;
	while ((got = waitpid(pid, NULL, __WALL)) < 0 && errno == EINTR)
		;
	return got;
}

static int put(pid_t pid, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	int saved = errno;
	close(fd);
	errno = saved;
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

static int get(pid_t pid, const char *name)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static const char *make(struct job *j, char *stack, const char *uids, const char *gids, int *user, int *net)
{
	pid_t first = clone(make_as_owner, stack, CLONE_VM, j);
	if (first < 0)
		return "begin a process";
	if (reap(first) < 0)
		return "wait for a process";
	if (j->failed) {
		errno = j->failed;
		return "make user namespace";
	}
	if (put(j->child, "uid_map", uids) < 0)
		return "map users";
	if (put(j->child, "gid_map", gids) < 0)
		return "map groups";
	if ((*user = get(j->child, "user")) < 0)
		return "open user namespace";
	if (net && (*net = get(j->child, "net")) < 0)
		return "open network namespace";
	return NULL;
}

const char *gbatch_namespaces(unsigned owner, const char *uids, const char *gids, int *user, int *net, int *code)
{
	static const char no_pipe[] = "make a pipe";
	char first[STACK] __attribute__((aligned(16))), second[STACK] __attribute__((aligned(16)));
	int hold[2];
	*user = -1;
	if (net)
		*net = -1;
	if (pipe2(hold, O_CLOEXEC) < 0) {
		*code = errno;
		return no_pipe;
	}
	struct job j = {
		.owner = owner,
		.parent = getpid(),
		.flags = CLONE_NEWUSER | (net ? CLONE_NEWNET : 0),
		.hold = hold[0],
		.stack = second + STACK,
	};
	// The children must run none of the program's signal handlers, and leave
	// its memory as open to others as it was.
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	int dumpable = prctl(PR_GET_DUMPABLE);
	const char *failed = make(&j, first + STACK, uids, gids, user, net);
	*code = errno;
	if (j.child > 0) {
		kill(j.child, SIGKILL);
		reap(j.child);
	}
	if (dumpable == 1)
		prctl(PR_SET_DUMPABLE, 1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(hold[0]);
	close(hold[1]);
	if (failed && *user >= 0)
		close(*user);
	return failed;
}
