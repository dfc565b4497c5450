// SPDX-License-Identifier: BSD-2-Clause
/* Which descriptors of this process are open. */
#ifndef UNIT_SOFT_DESCRIPTORS_H
#define UNIT_SOFT_DESCRIPTORS_H

#include <fcntl.h>
#include <stdbool.h>

#define WATCHED 256 /* count_open counts descriptors below this */

static inline bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static inline int count_open(void)
{
	int count = 0;

	for (int fd = 0; fd < WATCHED; fd++)
		count += is_open(fd);
	return count;
}

#endif
