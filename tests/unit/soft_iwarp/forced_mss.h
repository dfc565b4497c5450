// SPDX-License-Identifier: BSD-2-Clause
/* The segment size of TCP as the test wants it. Linked with --wrap=getsockopt. */
#ifndef TESTS_FORCED_MSS_H
#define TESTS_FORCED_MSS_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

static _Atomic int forced_mss; /* 0: that of the socket */

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	int mss = atomic_load(&forced_mss);
	int rc = __real_getsockopt(fd, level, name, value, size);

	if (!rc && level == IPPROTO_TCP && name == TCP_MAXSEG && mss)
		memcpy(value, &mss, sizeof(mss));
	return rc;
}

#endif
