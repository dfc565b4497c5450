// SPDX-License-Identifier: BSD-2-Clause
/* What to do about what the libraries have logged. The texts are those of src/soft and src/core. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "info.h"

void info_texts_drop(struct info_texts *texts, const char *part)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < texts->count; i++) {
		if (strstr(texts->texts[i], part))
			free(texts->texts[i]);
		else
			texts->texts[kept++] = texts->texts[i];
	}
	texts->count = kept;
}

static int try_memfd(void)
{
	return memfd_create("dat_info", MFD_CLOEXEC);
}

static int try_epoll(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

static int try_eventfd(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

/* Is one of the calls that an adapter needs denied to this process, as by the filter of a container? */
static void find_denied_call(struct info_adapter *adapter)
{
	static const struct {
		const char *name;
		int (*try)(void);
	} calls[] = {{"memfd_create", try_memfd},
		     {"epoll_create1", try_epoll},
		     {"eventfd2", try_eventfd}};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int fd = calls[i].try();

		if (fd >= 0) {
			close(fd);
			continue;
		}
		if (errno != EPERM && errno != ENOSYS && errno != EACCES)
			continue; /* a shortage */
		info_text_add(&adapter->reasons, "the system call %s is refused: %s", calls[i].name,
			      strerror(errno));
		info_text_add(&adapter->advice,
			      "let the seccomp filter of this process permit %s: --security-opt "
			      "seccomp=FILE of Docker and Podman, SystemCallFilter= of systemd",
			      calls[i].name);
	}
}

/* "socket_dir=/run/dat cannot be used: ..." */
static void advise_folder(struct info_adapter *adapter, const char *reason)
{
	const char *path = strchr(reason, '=') + 1;
	const char *end = strstr(path, " cannot be used");
	char name[512];
	struct stat st;

	if (!end || (size_t)(end - path) >= sizeof(name))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(end - path), path);
	if (lstat(name, &st) != 0)
		info_text_add(&adapter->advice, "make the directory: install -d -m 1777 %s", name);
	else if (!S_ISDIR(st.st_mode))
		info_text_add(&adapter->advice, "set socket_dir to a directory, and not a link");
	else if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
		info_text_add(&adapter->advice,
			      "its mode is %04o: chmod 1777 %s, so that nobody can replace what "
			      "others have made there",
			      (unsigned)(st.st_mode & 07777), name);
	else
		info_text_add(&adapter->advice,
			      "it belongs to user %u and has the mode %04o: it must belong to root "
			      "or to the user of the process, who has to reach and write it",
			      (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
}

/* The names of this host's RDMA devices, or "none". */
static void list_devices(char *text, size_t size)
{
	DIR *devices = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	size_t len = 0;

	snprintf(text, size, "none");
	while (devices && len < size && (entry = readdir(devices)))
		if (entry->d_name[0] != '.')
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
						entry->d_name);
	if (devices)
		closedir(devices);
}

/* "interface mlx5_0: No such device", of an adapter over rdma-core: it has no such device either. */
static void advise_device(struct info_adapter *adapter)
{
	char devices[256];

	list_devices(devices, sizeof(devices));
	info_text_add(
		&adapter->advice,
		"name an RDMA device or its interface in the line of dat.conf; devices of this "
		"host: %s (`rdma link`); a soft device needs no hardware: rdma link add rxe0 "
		"type rxe netdev INTERFACE",
		devices);
}

void info_advise(struct info_adapter *adapter)
{
	find_denied_call(adapter);
	for (unsigned i = 0; i < adapter->reasons.count; i++) {
		const char *reason = adapter->reasons.texts[i];

		if (strncmp(reason, "socket_dir=", 11) == 0)
			advise_folder(adapter, reason);
		if (strncmp(reason, "interface ", 10) == 0 &&
		    strstr(adapter->library, "libdat-verbs"))
			advise_device(adapter);
		if (strncmp(reason, "address ", 8) == 0)
			info_text_add(&adapter->advice,
				      "use one of the addresses that `ip address` lists");
	}
}
