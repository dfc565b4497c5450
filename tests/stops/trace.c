// SPDX-License-Identifier: BSD-2-Clause
/* Takes the victim to its moment by ptrace; see the header. */
#include "stops.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 16
#define MARK_ARGUMENT (-77) /* of getpgid: no process, and nobody else asks */
#define SYSCALL_STOP (SIGTRAP | 0x80)

/* The threads of the victim. */
static struct thread {
	pid_t tid;
	bool is_stopped;
} threads[THREADS_MAX];
static unsigned thread_count;

/* How far the victim has come. */
static struct progress {
	unsigned calls, marks;
	pid_t copier;	  /* the thread whose copy between processes is the moment, or 0 */
	bool is_stepping; /* the main thread is behind its mark */
	unsigned steps;
} progress;

void trace_mark(void)
{
	(void)syscall(SYS_getpgid, MARK_ARGUMENT);
}

static struct thread *thread_of(pid_t tid)
{
	for (unsigned i = 0; i < thread_count; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	if (thread_count == THREADS_MAX)
		abort();
	threads[thread_count] = (struct thread){.tid = tid};
	return &threads[thread_count++];
}

static void forget(pid_t tid)
{
	struct thread *thread = thread_of(tid);

	*thread = threads[--thread_count];
}

static bool is_mark(const struct __ptrace_syscall_info *info)
{
	return info->entry.nr == SYS_getpgid && (int)info->entry.args[0] == MARK_ARGUMENT;
}

/*
 * Only a tracer can stop a thread at the begin of such a call, between the check of the gate and
 * the copy (gate.h). A signal stops it before the check or behind the call.
 */
static bool is_copy_between_processes(const struct __ptrace_syscall_info *info)
{
	return info->entry.nr == SYS_process_vm_writev || info->entry.nr == SYS_process_vm_readv;
}

/* A thread begins a system call. True: this is the moment. */
static bool is_moment_of_entry(pid_t tid, const struct __ptrace_syscall_info *info,
			       const struct stops_moment *moment)
{
	if (is_mark(info)) {
		progress.marks++;
		return false;
	}
	if (++progress.calls != moment->call)
		return false;
	if (moment->is_kill || !is_copy_between_processes(info))
		return true;
	progress.copier = tid;
	return false;
}

/* A thread is at a system call. True: this is the moment. */
static bool is_moment_of_call(pid_t victim, pid_t tid, const struct stops_moment *moment)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) <= 0)
		return false;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		return is_moment_of_entry(tid, &info, moment);
	if (progress.copier == tid)
		return true;
	if (tid == victim && moment->mark && progress.marks == moment->mark &&
	    !progress.is_stepping) {
		progress.is_stepping = true; /* it leaves the mark */
		return moment->steps == 0;
	}
	return false;
}

/* Lets a stopped thread continue to its next stop. */
static void proceed(pid_t victim, pid_t tid, int signal)
{
	const bool is_step = progress.is_stepping && tid == victim;

	thread_of(tid)->is_stopped = false;
	(void)ptrace(is_step ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, tid, 0, signal);
}

/* A thread has created another one, which stops before it runs; this may be seen later. */
static void note_new_thread(pid_t creator)
{
	unsigned long tid;

	if (!ptrace(PTRACE_GETEVENTMSG, creator, 0, &tid))
		(void)thread_of((pid_t)tid);
}

/* A thread has stopped. True: this is the moment. */
static bool is_moment(pid_t victim, pid_t tid, int status, const struct stops_moment *moment,
		      int *signal_out)
{
	const int signal = WSTOPSIG(status), event = status >> 16;

	*signal_out = 0;
	if (signal == SYSCALL_STOP)
		return is_moment_of_call(victim, tid, moment);
	if (event == PTRACE_EVENT_CLONE)
		note_new_thread(tid);
	if (event)
		return false;
	if (signal != SIGTRAP)
		*signal_out = signal;
	else if (progress.is_stepping && tid == victim)
		return ++progress.steps >= moment->steps;
	return false;
}

/* Waits until a thread of the victim stops or ends. False: the victim has ended. */
static bool next_change(pid_t victim, pid_t *tid_out, int *status_out)
{
	for (;;) {
		/* the survivor is left alone: it is in another process group */
		pid_t tid = waitpid(-victim, status_out, __WALL);

		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			return false;
		*tid_out = tid;
		if (WIFSTOPPED(*status_out)) {
			thread_of(tid)->is_stopped = true;
			return true;
		}
		forget(tid);
		if (tid == victim && WIFSIGNALED(*status_out))
			snprintf(stops->message, sizeof(stops->message), "victim: signal %d",
				 WTERMSIG(*status_out));
		return tid != victim;
	}
}

/* Waits until one stops. False: the victim has ended. */
static bool next_stop(pid_t victim, pid_t *tid_out, int *status_out)
{
	while (next_change(victim, tid_out, status_out))
		if (WIFSTOPPED(*status_out))
			return true;
	return false;
}

/* Stops the threads that still run. */
static void stop_others(pid_t victim)
{
	pid_t tid;
	int status;

	for (unsigned i = 0; i < thread_count; i++)
		if (!threads[i].is_stopped)
			(void)ptrace(PTRACE_INTERRUPT, threads[i].tid, 0, 0);
	for (unsigned i = 0; i < thread_count;) {
		if (threads[i].is_stopped) {
			i++;
			continue;
		}
		/* one that was about to end will not stop */
		if (!next_change(victim, &tid, &status))
			return;
		i = 0;
	}
}

static void end_or_stop(pid_t victim, bool is_kill)
{
	if (is_kill) {
		stops->state = STOPS_KILLED;
		kill(victim, SIGKILL);
		while (waitpid(-victim, NULL, __WALL) > 0)
			continue;
		thread_count = 0;
	} else {
		stop_others(victim);
		stops->state = STOPS_STOPPED;
	}
}

static bool begin_trace(pid_t victim)
{
	const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
	pid_t tid;
	int status;

	thread_count = 0;
	progress = (struct progress){0};
	if (ptrace(PTRACE_SEIZE, victim, 0, options) != 0 ||
	    ptrace(PTRACE_INTERRUPT, victim, 0, 0) != 0)
		return false;
	if (!next_stop(victim, &tid, &status))
		return false;
	stops->is_watched = true;
	proceed(victim, tid, 0);
	return true;
}

enum stops_traced trace_until(pid_t victim, const struct stops_moment *moment)
{
	int status, signal;
	pid_t tid;

	if (!begin_trace(victim))
		return STOPS_IMPOSSIBLE;
	while (next_stop(victim, &tid, &status)) {
		if (is_moment(victim, tid, status, moment, &signal)) {
			end_or_stop(victim, moment->is_kill);
			return STOPS_REACHED;
		}
		proceed(victim, tid, signal);
	}
	return STOPS_NOT_REACHED;
}

void trace_release(void)
{
	while (thread_count)
		(void)ptrace(PTRACE_DETACH, threads[--thread_count].tid, 0, 0);
}
