// SPDX-License-Identifier: BSD-2-Clause
/* Copies by way of a memory file (bounce.h). */
#include "soft/bounce.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/lock.h"
#include "soft/fds.h"

#define SLOTS 16u /* copies at the same time */

struct soft_bounce {
	int fd;
	uint8_t *memory;	 /* SLOTS of SOFT_BOUNCE_MAX bytes */
	_Atomic bool is_refused; /* the kernel does not let us */
	struct {
		_Atomic bool is_used;
		char pad[63]; /* each its own line */
	} slots[SLOTS];
};

struct soft_bounce *soft_bounce_create(void)
{
	const size_t size = (size_t)SLOTS * SOFT_BOUNCE_MAX;
	struct soft_bounce *bounce = calloc(1, sizeof(*bounce));

	if (!bounce)
		return NULL;
	bounce->fd = soft_fd_memfd("opendat-bounce", size);
	if (bounce->fd < 0)
		goto err;
	/* each read would look whether its time is to be noted; where it may not be, it does */
	(void)fcntl(bounce->fd, F_SETFL, O_NOATIME);
	bounce->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bounce->fd, 0);
	if (bounce->memory == MAP_FAILED)
		goto err_fd;
	if (madvise(bounce->memory, size, MADV_DONTFORK) == 0)
		return bounce;
	munmap(bounce->memory, size);
err_fd:
	soft_fd_close(bounce->fd);
err:
	free(bounce);
	return NULL;
}

void soft_bounce_destroy(struct soft_bounce *bounce)
{
	if (!bounce)
		return;
	munmap(bounce->memory, (size_t)SLOTS * SOFT_BOUNCE_MAX);
	soft_fd_close(bounce->fd);
	free(bounce);
}

/* A thread comes back to the same lines. */
static uint32_t slot_of_thread(void)
{
	return (uint32_t)(core_lock_self() >> 6) % SLOTS;
}

uint8_t *soft_bounce_begin(struct soft_bounce *bounce)
{
	uint32_t slot = slot_of_thread();

	if (!bounce || atomic_load_explicit(&bounce->is_refused, memory_order_relaxed))
		return NULL;
	/* acquire and release: one user after the other in this slot */
	if (atomic_exchange_explicit(&bounce->slots[slot].is_used, true, memory_order_acquire))
		return NULL;
	return bounce->memory + (size_t)slot * SOFT_BOUNCE_MAX;
}

void soft_bounce_end(struct soft_bounce *bounce)
{
	atomic_store_explicit(&bounce->slots[slot_of_thread()].is_used, false,
			      memory_order_release);
}

/* Not pread(3) and preadv(2) by name, which are cancellation points. */
ssize_t soft_bounce_place(struct soft_bounce *bounce, const struct iovec *places, unsigned count)
{
	long at = (long)slot_of_thread() * SOFT_BOUNCE_MAX;
	ssize_t n =
		count == 1 ? syscall(SYS_pread64, bounce->fd, places->iov_base, places->iov_len, at)
			   : syscall(SYS_preadv, bounce->fd, places, (long)count, at, 0);

	if (n >= 0)
		return n;
	if (errno == EFAULT)
		return 0; /* a leading part may be there */
	/* a sandbox: relaxed, it only saves the next attempt */
	if (errno != EINTR)
		atomic_store_explicit(&bounce->is_refused, true, memory_order_relaxed);
	return -EAGAIN;
}

int soft_bounce_copy(struct soft_bounce *bounce, void *dst, const void *src, size_t len)
{
	const struct iovec place = {dst, len};
	uint8_t *memory = len <= SOFT_BOUNCE_MAX ? soft_bounce_begin(bounce) : NULL;
	ssize_t n;

	if (!memory)
		return -EAGAIN;
	memcpy(memory, src, len);
	n = soft_bounce_place(bounce, &place, 1);
	soft_bounce_end(bounce);
	if (n < 0)
		return (int)n;
	return n == (ssize_t)len ? 0 : -EFAULT;
}
