// SPDX-License-Identifier: BSD-2-Clause
/* The user nobody (nobody.h). */
#include "soft/shm/connect/nobody.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "shared/fd.h"

#define DEFAULT_OVERFLOW_UID 65534u

uid_t shm_nobody(void)
{
	static _Atomic uint32_t known; /* 0: not read yet */
	uint32_t uid = atomic_load_explicit(&known, memory_order_relaxed);
	char text[16] = "";
	int fd;

	if (uid)
		return (uid_t)uid;
	fd = opendat_fd_move(open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC));
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		uid = (uint32_t)strtoul(text, NULL, 10);
	if (fd >= 0)
		close(fd);
	if (!uid)
		uid = DEFAULT_OVERFLOW_UID;
	atomic_store_explicit(&known, uid, memory_order_relaxed);
	return (uid_t)uid;
}
