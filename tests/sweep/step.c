// SPDX-License-Identifier: BSD-2-Clause
/* The steps of a scenario; see the header. */
#include "step.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define EVENT_US 10000000u /* longest wait for an event */
#define STALL_US 600000u   /* the same if the fault may look like a stopped peer */

struct sweep_shared *sweep;

/* --- checks --- */

void step_wrong(const char *what, DAT_RETURN ret)
{
	const char *major = "?", *minor = "";

	if (sweep->message[0])
		return;
	dat_strerror(ret, &major, &minor);
	snprintf(sweep->message, sizeof(sweep->message), "%s%s:%d: %s: 0x%08x %s %s",
		 sweep->is_again ? "without the fault again: " : "", sweep->function, sweep->line,
		 what, (unsigned)ret, major, minor);
}

/* No shortage, but the kernel does not list its interfaces, so that only "lo" is known. */
static bool hides_interfaces(void)
{
	return sweep->error == EAGAIN || sweep->error == EPIPE || sweep->error == ECONNRESET ||
	       sweep->error == EADDRINUSE;
}

/* May the call fail so? */
static bool is_right(const struct run *run, DAT_RETURN ret)
{
	if ((ret & DAT_CLASS_ERROR) == 0)
		return false;
	switch (DAT_GET_TYPE(ret)) {
	case DAT_INSUFFICIENT_RESOURCES:
		return true;
	case DAT_PROVIDER_NOT_FOUND:
		return sweep->is_fired_in_loader || (run->scenario->has_dir && hides_interfaces());
	case DAT_INTERNAL_ERROR: /* no shortage, but a system call that should not fail */
		return sweep->error == EIO || sweep->error == EPERM || sweep->error == EBUSY ||
		       sweep->error == EINVAL || sweep->error == ENOSYS ||
		       sweep->error == ECONNRESET || sweep->error == EPIPE;
	case DAT_CONN_QUAL_IN_USE:
	case DAT_CONN_QUAL_UNAVAILABLE:
		return sweep->error == EADDRINUSE;
	case DAT_TIMEOUT_EXPIRED:
		return sweep->is_stall;
	default:
		return false;
	}
}

void step_at(const char *function, int line)
{
	sweep->function = function;
	sweep->line = line;
}

bool step_check(const struct run *run, DAT_RETURN ret, const char *call)
{
	if (ret == DAT_SUCCESS)
		return true;
	if (!run->has_fault || !sweep->fired || !is_right(run, ret))
		step_wrong(call, ret);
	return false;
}

void step_must(DAT_RETURN ret, const char *call)
{
	if (ret != DAT_SUCCESS)
		step_wrong(call, ret);
}

uint64_t step_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

bool step_event(struct run *run, DAT_EVD_HANDLE evd, DAT_EVENT *event_out)
{
	const DAT_TIMEOUT patience = sweep->is_stall && run->has_fault ? STALL_US : EVENT_US;
	const uint64_t end = step_now_us() + EVENT_US;
	DAT_COUNT more;
	DAT_RETURN ret;
	bool is_early;

	do {
		ret = dat_evd_wait(evd, patience, 1, event_out, &more);
		/* without the fault the machine is slow */
		is_early = DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL ||
			   (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED && !sweep->fired);
	} while (is_early && step_now_us() < end);
	return step_check(run, ret, "dat_evd_wait");
}
