// SPDX-License-Identifier: BSD-2-Clause
#ifndef SHM_NOBODY_H
#define SHM_NOBODY_H

#include <sys/types.h>

/*
 * The user that the kernel reports in place of each user that is not mapped in our user namespace.
 * So two processes, or files, that have it may be of different users.
 */
uid_t shm_nobody(void);

#endif
