// SPDX-License-Identifier: BSD-2-Clause
/* Sleeping and waking by semaphores and bells (waker.h). */
#include "core/base/waker.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"

void core_waker_init(struct core_waker *waker)
{
	sem_init(&waker->sem, 0, 0);
	waker->is_asleep = false;
	waker->bell = NULL;
}

void core_waker_fini(struct core_waker *waker)
{
	sem_destroy(&waker->sem);
}

static long futex(_Atomic uint32_t *bell, int op, uint32_t value, const struct timespec *until)
{
	return syscall(SYS_futex, bell, op, value, until, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Wakes all sleepers. */
static void bell_ring(_Atomic uint32_t *bell)
{
	/* release: pairs with the load of the bell in sleep_begin; a thread that loads the new
	 * value sees the work that the ring announces, else it could sleep on that value */
	atomic_fetch_add_explicit(bell, 1, memory_order_release);
	futex(bell, FUTEX_WAKE, INT_MAX, NULL);
}

void core_waker_wake_locked(struct core_waker *waker)
{
	if (!waker->is_asleep)
		return;
	waker->is_asleep = false;
	if (waker->bell)
		bell_ring(waker->bell);
	else
		sem_post(&waker->sem);
}

void core_waker_reset_locked(struct core_waker *waker)
{
	while (!sem_trywait(&waker->sem))
		;
	waker->is_asleep = false;
}

bool core_bell_wake(_Atomic uint32_t *bell)
{
	/* release: as in bell_ring */
	atomic_fetch_add_explicit(bell, 1, memory_order_release);
	return futex(bell, FUTEX_WAKE, 1, NULL) > 0;
}

int core_bell_wait(_Atomic uint32_t *bell, uint32_t seen, uint64_t end_ns)
{
	const struct timespec until = core_timespec(end_ns);

	/* always with a timeout: without one the kernel restarts the wait after a signal handler
	 * that was installed with SA_RESTART */
	if (futex(bell, FUTEX_WAIT_BITSET, seen, &until) == 0)
		return 0;
	return errno == EAGAIN ? 0 : errno;
}
