// Steps measures how long srun takes to start tasks. "steps run N PROGRAM..." begins
// the program N times and prints, of each, when the tasks' main functions began, when
// they were ready, and when the program ended, in ms since its begin. "steps task" is
// such a task, which is ready at once; "steps pmix" is one that is ready when PMIx_Init
// and a fence of all have returned.
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t); // one clock for all containers of a machine
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int run(char **program) {
	int p[2], status, n = 0;
	char line[4096];
	double from, to, first = 1e30, began = 0, ready = 0;
	if (pipe(p))
		return 1;
	double start = now();
	pid_t pid = fork();
	if (pid == 0) {
		dup2(p[1], 1);
		close(p[0]);
		close(p[1]);
		execvp(program[0], program);
		_exit(127);
	}
	close(p[1]);
	FILE *f = fdopen(p[0], "r");
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "steps: %lf %lf", &from, &to) != 2) {
			fputs(line, stdout);
			continue;
		}
		n++;
		first = from < first ? from : first;
		began = from > began ? from : began;
		ready = to > ready ? to : ready;
	}
	fclose(f);
	waitpid(pid, &status, 0);
	double end = now() - start;
	if (n == 0)
		first = began = ready = start;
	printf("run tasks=%d first=%.1f began=%.1f ready=%.1f over=%.1f code=%d\n", n, first - start, began - start, ready - start, end, WEXITSTATUS(status));
	fflush(stdout);
	return 0;
}

int main(int c, char **v) {
	double began = now();
	pmix_proc_t self;
	if (c > 3 && strcmp(v[1], "run") == 0) {
		for (int k = atoi(v[2]); k > 0; k--)
			if (run(v + 3))
				return 1;
		return 0;
	}
	int pmix = c > 1 && strcmp(v[1], "pmix") == 0;
	if (pmix && (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS || PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS))
		return 1;
	printf("steps: %.3f %.3f\n", began, now());
	fflush(stdout);
	if (pmix)
		PMIx_Finalize(NULL, 0);
	return 0;
}
