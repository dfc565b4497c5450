// SPDX-License-Identifier: BSD-2-Clause
/* See thread.h. */
#include "soft/thread.h"

#include <sys/eventfd.h>

#include "soft/fds.h"

#define STACK_SIZE (256u * 1024u) /* a service thread needs less than 96 KiB */

int soft_thread_open(struct core_service *service)
{
	soft_fd_begin();
	service->epoll_fd = soft_fd_end(epoll_create1(EPOLL_CLOEXEC));
	if (service->epoll_fd < 0)
		return service->epoll_fd;
	soft_fd_begin();
	service->kick_fd = soft_fd_end(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
	if (service->kick_fd < 0)
		return service->kick_fd;
	return core_service_watch_kicks(service, (epoll_data_t){.ptr = NULL});
}

int soft_thread_start(struct core_service *service, const struct core_ia *ia, const char *name,
		      void *(*run)(void *), void *argument)
{
	/*
	 * A stack of the default size takes 8 MiB of address space, and agents of the consumer do
	 * not run on this one.
	 */
	const struct core_service_form form = {.name = name, .stack_size = STACK_SIZE, .run = run};

	return core_service_start(service, ia, &form, argument);
}

void soft_thread_close(struct core_service *service)
{
	soft_fd_close(service->kick_fd);
	soft_fd_close(service->epoll_fd);
	service->kick_fd = -1;
	service->epoll_fd = -1;
}
