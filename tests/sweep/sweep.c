// SPDX-License-Identifier: BSD-2-Clause
/*
 * The driver of the fault sweep.
 *
 *   sweep                                   every point
 *   sweep --share K                         every K-th walk: a call, an errno, once or always
 *   sweep --only SCENARIO[/CALL]            one scenario, or one call in it
 *   sweep SCENARIO CALL ERRNO N once|always one point, as a failure prints it
 */
#include "sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXIT_SKIP 77
/* A call that a thread repeats while it waits is never not reached. */
#define POINTS_MAX 400

static unsigned points, failures;
static unsigned share = 1;

static void print_failure(const struct sweep_point *point)
{
	printf("FAILED: sweep %s %s %s %u %s\n        %s\n", point->scenario->name,
	       point->call->name, syscalls_errno_name(point->error), point->n,
	       point->is_always ? "always" : "once", sweep->message);
	fflush(stdout);
}

static void give_up_if_impossible(enum sweep_result result)
{
	if (result != SWEEP_IMPOSSIBLE)
		return;
	printf("skipped: seccomp filters with a listener are not allowed here\n");
	exit(failures ? 1 : EXIT_SKIP);
}

/* Every n until the scenario ends without reaching the n-th call. */
static void walk(struct sweep_point point)
{
	static unsigned walks;
	enum sweep_result result;

	if (walks++ % share)
		return;
	for (point.n = 1; point.n <= POINTS_MAX; point.n++) {
		result = point_run(&point);
		give_up_if_impossible(result);
		if (result == SWEEP_NOT_REACHED)
			break;
		points++;
		if (result != SWEEP_PASSED) {
			failures++;
			print_failure(&point);
		}
		if (result == SWEEP_BROKEN)
			break;
	}
}

static bool is_left_out(const struct sweep_point *point)
{
	/* CONF-04: a registry file that cannot be read counts as missing from then on */
	if (point->scenario->has_conf && (point->error == EACCES || point->error == EIO))
		return true;
	/* an event descriptor, by which the service thread is woken, is full only if it is readable
	 */
	return strcmp(point->scenario->transport, "tcp") == 0 && point->call->number == SYS_write &&
	       point->error == EAGAIN;
}

static void walk_call(const struct sweep_scenario *scenario, const struct sweep_call *call)
{
	for (size_t i = 0; i < sizeof(call->errnos) / sizeof(call->errnos[0]); i++) {
		struct sweep_point point = {scenario, call, call->errnos[i], 0, false};

		if (!point.error)
			break;
		if (is_left_out(&point))
			continue;
		walk(point);
		point.is_always = true;
		if (point.error != EINTR) /* each caller repeats the call */
			walk(point);
	}
}

/* `only` is NULL, or SCENARIO, or SCENARIO/CALL. */
static bool is_chosen(const char *only, const char *scenario, const char *call)
{
	char name[80];

	snprintf(name, sizeof(name), "%s/%s", scenario, call);
	return !only || strcmp(only, scenario) == 0 || strcmp(only, name) == 0;
}

static bool can_run(const struct sweep_scenario *scenario)
{
	bool is_possible = scenario_is_possible(scenario);

	if (!is_possible)
		printf("%s: skipped, no network namespace\n", scenario->name);
	return is_possible;
}

static void walk_all(const char *only)
{
	for (unsigned i = 0; i < sweep_scenario_count; i++) {
		const struct sweep_scenario *scenario = &sweep_scenarios[i];
		unsigned before = points;

		for (unsigned j = 0; j < sweep_call_count; j++) {
			if (!is_chosen(only, scenario->name, sweep_calls[j].name))
				continue;
			if (!can_run(scenario))
				break;
			walk_call(scenario, &sweep_calls[j]);
		}
		if (points != before)
			printf("%s: %u points\n", scenario->name, points - before);
		fflush(stdout);
	}
	printf("%u fault points, %u failed\n", points, failures);
}

/* --- one point --- */

static bool parse_error(struct sweep_point *point, const char *name)
{
	for (size_t i = 0; i < sizeof(point->call->errnos) / sizeof(point->call->errnos[0]); i++)
		if (point->call->errnos[i] &&
		    strcmp(syscalls_errno_name(point->call->errnos[i]), name) == 0)
			point->error = point->call->errnos[i];
	return point->error;
}

static bool parse_point(struct sweep_point *point, char **arg)
{
	for (unsigned i = 0; i < sweep_scenario_count; i++)
		if (strcmp(sweep_scenarios[i].name, arg[0]) == 0)
			point->scenario = &sweep_scenarios[i];
	for (unsigned i = 0; i < sweep_call_count; i++)
		if (strcmp(sweep_calls[i].name, arg[1]) == 0)
			point->call = &sweep_calls[i];
	if (!point->scenario || !point->call || !parse_error(point, arg[2]))
		return false;
	point->n = (unsigned)strtoul(arg[3], NULL, 10);
	point->is_always = strcmp(arg[4], "always") == 0;
	return point->n != 0;
}

static int run_one(char **arg)
{
	struct sweep_point point = {.n = 0};
	enum sweep_result result;

	if (!parse_point(&point, arg)) {
		fprintf(stderr, "sweep: no such point\n");
		return 2;
	}
	if (!can_run(point.scenario))
		return EXIT_SKIP;
	result = point_run(&point);
	give_up_if_impossible(result);
	if (result == SWEEP_FAILED || result == SWEEP_BROKEN)
		print_failure(&point);
	else
		printf("%s\n", result == SWEEP_PASSED ? "passed" : "not reached");
	return result == SWEEP_FAILED || result == SWEEP_BROKEN;
}

/* With one arena and no mappings of malloc, every run of a process holds the same amount. */
static void restart_with_plain_malloc(char **argv)
{
	if (getenv("GLIBC_TUNABLES"))
		return;
	setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1:glibc.malloc.mmap_max=0", 1);
	execv("/proc/self/exe", argv);
}

static int usage(const char *argument)
{
	fprintf(stderr,
		"sweep: %s: unknown\n"
		"usage: sweep [--share K] [--only SCENARIO[/CALL]]\n"
		"       sweep SCENARIO CALL ERRNO N once|always\n",
		argument);
	return 2;
}

int main(int argc, char **argv)
{
	const char *only = NULL;

	restart_with_plain_malloc(argv);
	sweep = mmap(NULL, sizeof(*sweep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (sweep == MAP_FAILED)
		return 2;
	scenario_prepare();
	if (argc == 6)
		return run_one(argv + 1);
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--share") == 0)
			share = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
		else
			return usage(argv[i]);
	}
	if (share == 0)
		share = 1;
	walk_all(only);
	return failures != 0;
}
