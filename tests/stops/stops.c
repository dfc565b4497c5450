// SPDX-License-Identifier: BSD-2-Clause
/*
 * The driver of the moments at which a peer ends or stops (stops.h).
 *
 *   stops                                    every moment
 *   stops --share K                          every K-th
 *   stops --only SCENARIO                    those of one scenario
 *   stops SCENARIO kill|stop call N          one moment, as a failure prints it
 *   stops SCENARIO kill|stop mark M STEPS
 */
#include "stops.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define CALLS_MAX 300u
#define MARKS_MAX 60u
/* Instructions of a call: more than any takes that does not sleep, in prime steps. */
#define STEPS_MAX 2000u
#define STEPS_STRIDE 37u

static const struct stops_scenario scenarios[] = {
	{"map-active", "map", "shm", true},   {"map-passive", "map", "shm", false},
	{"cma-active", "cma", "shm", true},   {"cma-passive", "cma", "shm", false},
	{"ring-active", "ring", "shm", true}, {"ring-passive", "ring", "shm", false},
	{"tcp-active", "auto", "tcp", true},  {"tcp-passive", "auto", "tcp", false},
};

static unsigned moments, failures, share = 1;

static pid_t start(const struct stops_scenario *scenario, bool is_victim)
{
	pid_t child = fork();

	if (child < 0)
		abort();
	if (child == 0) {
		setpgid(0, 0); /* the tracer waits for the group of the victim */
		stops_run(scenario, is_victim);
	}
	setpgid(child, child);
	return child;
}

/* Waits for the end of a process. False, after killing it: it does not end. */
static bool has_ended(pid_t child, int *status_out)
{
	const uint64_t limit = stops_now_ms() + 3 * STOPS_HANG_MS;
	const struct timespec pause = {.tv_nsec = 300000};

	while (waitpid(child, status_out, WNOHANG) == 0) {
		if (stops_now_ms() > limit) {
			kill(child, SIGKILL);
			waitpid(child, status_out, 0);
			return false;
		}
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Waits until the survivor has freed its region, or has ended. */
static void wait_until_over(pid_t survivor)
{
	const uint64_t limit = stops_now_ms() + 2 * STOPS_HANG_MS;
	const struct timespec pause = {.tv_nsec = 300000};
	siginfo_t info = {.si_pid = 0};

	while (!stops->is_over && !info.si_pid && stops_now_ms() < limit) {
		nanosleep(&pause, NULL);
		waitid(P_PID, (id_t)survivor, &info, WEXITED | WNOHANG | WNOWAIT);
	}
}

static void judge(pid_t child, const char *who)
{
	int status = 0;

	if (!has_ended(child, &status))
		snprintf(stops->message, sizeof(stops->message), "%s hangs in line %d", who,
			 (int)stops->line);
	else if (WIFSIGNALED(status) && !stops->message[0])
		snprintf(stops->message, sizeof(stops->message), "%s: signal %d in line %d", who,
			 WTERMSIG(status), (int)stops->line);
	else if (WIFEXITED(status) && WEXITSTATUS(status) && !stops->message[0])
		snprintf(stops->message, sizeof(stops->message), "%s: exit status %d", who,
			 WEXITSTATUS(status));
}

static void print_failure(const struct stops_scenario *scenario, const struct stops_moment *moment)
{
	printf("FAILED: stops %s %s ", scenario->name, moment->is_kill ? "kill" : "stop");
	if (moment->call)
		printf("call %u", moment->call);
	else
		printf("mark %u %u", moment->mark, moment->steps);
	printf("\n        %s\n", stops->message);
	fflush(stdout);
}

static enum stops_traced run(const struct stops_scenario *scenario,
			     const struct stops_moment *moment)
{
	enum stops_traced traced;
	pid_t victim, survivor;

	memset(stops, 0, sizeof(*stops));
	fflush(NULL);
	victim = start(scenario, true);
	survivor = start(scenario, false);
	traced = trace_until(victim, moment);
	if (traced == STOPS_IMPOSSIBLE) {
		kill(victim, SIGKILL);
		kill(survivor, SIGKILL);
		printf("skipped: processes may not be traced here\n");
		exit(EXIT_SKIP);
	}
	if (traced == STOPS_REACHED && !moment->is_kill) {
		wait_until_over(survivor);
		trace_release();
		judge(victim, "victim that continues");
	}
	stops->is_finished = true;
	judge(survivor, "survivor");
	moments += traced == STOPS_REACHED;
	if (stops->message[0]) {
		failures++;
		print_failure(scenario, moment);
	}
	return traced;
}

static void run_calls(const struct stops_scenario *scenario, bool is_kill)
{
	for (unsigned n = 1; n <= CALLS_MAX; n += share) {
		const struct stops_moment moment = {.call = n, .is_kill = is_kill};

		if (run(scenario, &moment) == STOPS_NOT_REACHED)
			break;
	}
}

static void run_marks(const struct stops_scenario *scenario, bool is_kill)
{
	unsigned i = 0;

	for (unsigned mark = 1; mark <= MARKS_MAX; mark++) {
		for (unsigned steps = 0; steps <= STEPS_MAX; steps += STEPS_STRIDE) {
			const struct stops_moment moment = {
				.mark = mark, .steps = steps, .is_kill = is_kill};

			if (i++ % share)
				continue;
			if (run(scenario, &moment) == STOPS_NOT_REACHED)
				return;
		}
	}
}

/* One moment, named on the command line. */
static void run_one(int argc, char **argv)
{
	struct stops_moment moment = {.is_kill = strcmp(argv[2], "kill") == 0};

	if (strcmp(argv[3], "call") == 0 && argc == 5) {
		moment.call = (unsigned)strtoul(argv[4], NULL, 10);
	} else if (argc == 6) {
		moment.mark = (unsigned)strtoul(argv[4], NULL, 10);
		moment.steps = (unsigned)strtoul(argv[5], NULL, 10);
	}
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(scenarios[i].name, argv[1]) == 0)
			run(&scenarios[i], &moment);
}

static void run_all(int argc, char **argv)
{
	const char *only = NULL;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--share") == 0)
			share = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
	}
	if (share == 0)
		share = 1;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (only && strcmp(only, scenarios[i].name) != 0)
			continue;
		for (int is_kill = 0; is_kill <= 1; is_kill++) {
			run_calls(&scenarios[i], is_kill);
			run_marks(&scenarios[i], is_kill);
		}
	}
}

int main(int argc, char **argv)
{
	stops = mmap(NULL, sizeof(*stops), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stops == MAP_FAILED)
		return 1;
	if (argc > 4 && argv[1][0] != '-')
		run_one(argc, argv);
	else
		run_all(argc, argv);
	printf("%u moments, %u failures\n", moments, failures);
	return failures || !moments;
}
