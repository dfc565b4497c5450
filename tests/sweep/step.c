// SPDX-License-Identifier: BSD-2-Clause
/* The steps of a scenario, and what the consumer prepares for them; see the header. */
#include "step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EVENT_US 10000000u /* longest wait for an event */
#define STALL_US 600000u   /* the same if the fault may look like a stopped peer */

struct sweep_shared *sweep;
unsigned char *step_memory[SIDES];

/* --- a registry file --- */

static const char conf_text[] =
	"soft-lo u1.2 threadsafe default libdat-soft.so.1 opendat.1 \"lo\" \"\"\n"
	"soft-lo u1.2 nonthreadsafe default libdat-soft.so.1 opendat.1 \"lo\" \"\"\n";
static char conf_path[40];

static void conf_prepare(void)
{
	int fd = memfd_create("dat.conf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, conf_text, strlen(conf_text)) != (ssize_t)strlen(conf_text))
		abort();
	snprintf(conf_path, sizeof(conf_path), "/proc/self/fd/%d", fd);
}

void scenario_environment(const struct sweep_scenario *scenario)
{
	setenv("DAT_COPY", scenario->copy, 1);
	setenv("DAT_TRANSPORT", scenario->transport, 1);
	if (scenario->has_conf)
		setenv("DAT_OVERRIDE", conf_path, 1);
}

void scenario_prepare(void)
{
	conf_prepare();
	for (int side = A; side < SIDES; side++) {
		int fd = memfd_create("sweep", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		if (fd < 0 || ftruncate(fd, SWEEP_LEN) ||
		    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
			abort();
		step_memory[side] =
			mmap(NULL, SWEEP_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (step_memory[side] == MAP_FAILED)
			abort();
	}
}

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

/* May the call fail so? */
static bool is_right(DAT_RETURN ret)
{
	if ((ret & DAT_CLASS_ERROR) == 0)
		return false;
	switch (DAT_GET_TYPE(ret)) {
	case DAT_INSUFFICIENT_RESOURCES:
		return true;
	case DAT_PROVIDER_NOT_FOUND:
		return sweep->is_fired_in_loader;
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
	if (!run->has_fault || !sweep->fired || !is_right(ret))
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
