// SPDX-License-Identifier: BSD-2-Clause
/* See thread.h. */
#include "core/base/thread.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/log.h"

/* On the stack of the creator, which waits until the thread needs it no more. */
struct start {
	const struct core_thread_form *form;
	void *(*run)(void *);
	void *argument;
	sem_t is_ready;
	int rc;
};

/* --- policy and processors --- */

/* System calls: musl has no functions for them, and those of glibc for a thread may be stale. */
static struct core_sched sched_of_caller(void)
{
	struct core_sched sched = {.policy = (int)syscall(SYS_sched_getscheduler, 0)};
	struct sched_param param = {0};

	if (sched.policy < 0 || syscall(SYS_sched_getparam, 0, &param))
		return (struct core_sched){.policy = -1};
	sched.policy &= ~SCHED_RESET_ON_FORK;
	sched.priority = param.sched_priority;
	return sched;
}

struct core_sched core_sched_above_caller(void)
{
	struct core_sched sched = sched_of_caller();

	if ((sched.policy == SCHED_FIFO || sched.policy == SCHED_RR) &&
	    sched.priority < sched_get_priority_max(sched.policy))
		sched.priority++;
	return sched;
}

static bool set_sched(int policy, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	return syscall(SYS_sched_setscheduler, 0, policy, &param) == 0;
}

/* Sets the policy of the calling thread; a priority that the kernel refuses is taken one lower. */
static void take_sched(const struct core_sched *sched)
{
	struct core_sched own = sched_of_caller();

	if (sched->policy < 0 || (own.policy == sched->policy && own.priority == sched->priority))
		return;
	if (!set_sched(sched->policy, sched->priority) && sched->priority > 1)
		(void)set_sched(sched->policy, sched->priority - 1);
}

static int take_cpus(const struct core_thread_form *form)
{
	if (!form->cpus || !CPU_COUNT(form->cpus))
		return 0;
	if (sched_setaffinity(0, sizeof(*form->cpus), form->cpus) == 0)
		return 0;
	core_log(CORE_LOG_ERROR, "service_cpus: thread %s can run on none of these processors: %m",
		 form->name);
	return -ENODEV;
}

/* --- the start --- */

/*
 * The thread sets its own attributes while the creator sleeps. So it runs also if both have the
 * same processor and the same priority.
 */
static void *thread_run(void *argument)
{
	struct start *start = argument;
	void *(*run)(void *) = start->run;
	void *run_argument = start->argument;
	int rc;

	(void)pthread_setname_np(pthread_self(), start->form->name);
	take_sched(&start->form->sched);
	rc = start->rc = take_cpus(start->form);
	sem_post(&start->is_ready);
	return rc ? NULL : run(run_argument);
}

static int create(pthread_t *thread, struct start *start, size_t stack_size)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	if (stack_size)
		pthread_attr_setstacksize(&attr, stack_size);
	if (start->form->is_detached)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(thread, &attr, thread_run, start);
	pthread_attr_destroy(&attr);
	return -rc;
}

int core_thread_create(pthread_t *thread, const struct core_thread_form *form, void *(*run)(void *),
		       void *argument)
{
	struct start start = {.form = form, .run = run, .argument = argument};
	int state = core_cancel_off();
	sigset_t all, old;
	int rc;

	sem_init(&start.is_ready, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* the thread inherits the mask */
	rc = create(thread, &start, form->stack_size);
	if (rc == -EINVAL) /* the thread-local variables of the program do not fit */
		rc = create(thread, &start, 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0) {
		while (sem_wait(&start.is_ready) < 0) /* EINTR */
			;
		rc = start.rc;
		if (rc && !form->is_detached)
			pthread_join(*thread, NULL);
	}
	sem_destroy(&start.is_ready);
	core_cancel_restore(state);
	return rc;
}
