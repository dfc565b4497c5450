// SPDX-License-Identifier: BSD-2-Clause
/* The service thread of an engine: core/base/service.h, with descriptors of soft/fds.h. */
#ifndef SOFT_THREAD_H
#define SOFT_THREAD_H

#include "core/base/service.h"

/* Opens both descriptors. epoll reports NULL when the thread is woken. 0, or -errno. */
int soft_thread_open(struct core_service *service);
/* Starts the thread, as the instance says: 0, or -errno. */
int soft_thread_start(struct core_service *service, const struct core_ia *ia, const char *name,
		      void *(*run)(void *), void *argument);
/* Closes the descriptors that are open. */
void soft_thread_close(struct core_service *service);

#endif
