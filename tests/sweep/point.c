// SPDX-License-Identifier: BSD-2-Clause
/* One point: the child that runs it, and the driver that waits for it and judges it. */
#include "sweep.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANG_MS 60000
#define EXIT_IMPOSSIBLE 77
#define TRIES_MAX 1000 /* of a call while the system lacks memory: every 10 ms in ten seconds */

/* --- the child --- */

static void child_run(const struct sweep_point *point)
{
	alloc_forked();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	scenario_environment(point->scenario);
	if (point->call->number != SWEEP_MALLOC && !syscalls_filter(point->call))
		_exit(EXIT_IMPOSSIBLE);
	if (point->scenario->is_warm)
		scenario_run(point->scenario, false);
	alloc_begin(point);
	if (!sweep->message[0])
		scenario_run(point->scenario, true);
	sweep->is_again = true;
	if (!sweep->message[0])
		scenario_run(point->scenario, false);
	measure_take(&sweep->measure);
	_exit(0);
}

/* --- the driver --- */

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void complain(const char *what, long a, long b)
{
	if (!sweep->message[0])
		snprintf(sweep->message, sizeof(sweep->message), "%s: %ld, without a fault %ld",
			 what, a, b);
}

/* Answers the child's calls until it ends. False: it does not. */
static bool child_serve(const struct sweep_point *point, pid_t child, int *status_out)
{
	const long end = now_ms() + HANG_MS;
	int process = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd fds[2] = {{process, POLLIN, 0}, {-1, POLLIN, 0}};
	bool has_ended = false;

	while (!has_ended && now_ms() < end) {
		bool is_starting = point->call->number != SWEEP_MALLOC && fds[1].fd < 0;

		if (is_starting && sweep->listener > 0)
			fds[1].fd = syscalls_take(child);
		if (poll(fds, 2, is_starting ? 0 : 100) < 0 && errno != EINTR)
			break;
		if (fds[1].fd >= 0 && (fds[1].revents & POLLIN))
			syscalls_answer(fds[1].fd, point);
		has_ended = waitpid(child, status_out, WNOHANG) == child;
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	close(process);
	return has_ended;
}

static enum sweep_result child_judge(pid_t child, bool has_ended, int status)
{
	if (!has_ended) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		snprintf(sweep->message, sizeof(sweep->message), "hangs in %s:%d", sweep->function,
			 sweep->line);
	} else if (WIFSIGNALED(status)) {
		snprintf(sweep->message, sizeof(sweep->message), "signal %d in %s:%d",
			 WTERMSIG(status), sweep->function, sweep->line);
	} else if (WEXITSTATUS(status) == EXIT_IMPOSSIBLE) {
		return SWEEP_IMPOSSIBLE;
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(sweep->message, sizeof(sweep->message), "exit status %d in %s:%d",
			 WEXITSTATUS(status), sweep->function, sweep->line);
	}
	return sweep->message[0] ? SWEEP_FAILED : SWEEP_PASSED;
}

/* Does the error, if it persists, look like a peer that does not read, or does not write? */
static bool is_stall(const struct sweep_point *point)
{
	if (point->error == ENOMEM)
		return point->call->number == SYS_recvfrom; /* of TCP, which tries again */
	return point->error == EAGAIN || point->error == ENOBUFS || point->error == EPIPE;
}

/* The kernel lacks memory all the time: a call that is tried again must leave a pause. */
static bool is_tried_too_often(const struct sweep_point *point)
{
	return sweep->is_stall && (point->error == ENOMEM || point->error == ENOBUFS) &&
	       sweep->fired > TRIES_MAX;
}

static enum sweep_result point_try(const struct sweep_point *point)
{
	bool has_ended;
	int status = 0;
	pid_t child;

	memset(sweep, 0, sizeof(*sweep));
	scenario_clean();
	sweep->error = point->n ? point->error : 0;
	sweep->is_stall = point->is_always && is_stall(point);
	fflush(NULL);
	child = fork();
	if (child == 0)
		child_run(point);
	if (child < 0) {
		snprintf(sweep->message, sizeof(sweep->message), "fork: %s", strerror(errno));
		return SWEEP_FAILED;
	}
	has_ended = child_serve(point, child, &status);
	return child_judge(child, has_ended, status);
}

/* The child without a fault, once for each scenario and call. */
static enum sweep_result point_reference(const struct sweep_point *point,
					 struct sweep_measure *measure_out)
{
	static struct sweep_measure measure;
	static const struct sweep_scenario *scenario;
	static const struct sweep_call *call;
	struct sweep_point none = *point;
	enum sweep_result result;

	if (scenario != point->scenario || call != point->call) {
		none.n = 0;
		result = point_try(&none);
		if (result != SWEEP_PASSED)
			return result == SWEEP_FAILED ? SWEEP_BROKEN : result;
		measure = sweep->measure;
		scenario = point->scenario;
		call = point->call;
	}
	*measure_out = measure;
	return SWEEP_PASSED;
}

enum sweep_result point_run(const struct sweep_point *point)
{
	const struct sweep_measure *measure = &sweep->measure;
	struct sweep_measure reference;
	enum sweep_result result = point_reference(point, &reference);

	if (result != SWEEP_PASSED)
		return result;
	result = point_try(point);
	if (result != SWEEP_PASSED)
		return result;
	if (!sweep->fired)
		return SWEEP_NOT_REACHED;
	if (is_tried_too_often(point))
		snprintf(sweep->message, sizeof(sweep->message), "tried %u times, without a pause",
			 (unsigned)sweep->fired);
	if (measure->threads > reference.threads)
		complain("threads", measure->threads, reference.threads);
	if (measure->descriptors > reference.descriptors && !point->call->leaks_descriptors)
		complain("descriptors", measure->descriptors, reference.descriptors);
	if (measure->mapped_kib > reference.mapped_kib && !point->call->leaks_mappings)
		complain("KiB mapped", measure->mapped_kib, reference.mapped_kib);
	if (measure->files > reference.files && !point->call->leaks_files)
		complain("files in the directory", measure->files, reference.files);
	if (measure->blocks > reference.blocks)
		complain("blocks of malloc", measure->blocks, reference.blocks);
	return sweep->message[0] ? SWEEP_FAILED : SWEEP_PASSED;
}
