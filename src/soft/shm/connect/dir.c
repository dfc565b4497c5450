// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of sockets in a directory (dir.h). All calls name a file by the descriptor of the
 * directory, so nobody can exchange the directory later. Those that take an address of a socket go
 * through /proc/thread-self/fd, and a long path fits, too. /proc/self/fd is empty when the main
 * thread has ended.
 */
#include "soft/shm/connect/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/slab.h"
#include "soft/address.h"
#include "soft/fds.h"

#define PROC_FD "/proc/thread-self/fd/%d"
#define SOCKET_MODE 0666 /* all who reach it may call, as with an abstract name */

/* --- the directory --- */

/* False: the C library's view of /proc is not that of this process. */
static bool has_proc(int fd, const struct stat *st)
{
	char path[40];
	struct stat same;

	snprintf(path, sizeof(path), PROC_FD, fd);
	return stat(path, &same) == 0 && same.st_dev == st->st_dev && same.st_ino == st->st_ino;
}

/* Why it cannot be used; NULL: it can. */
static const char *find_fault(int fd, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "its owner is neither root nor the user of this process";
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) && !(st->st_mode & S_ISVTX))
		return "others can write to it, and its sticky bit is not set";
	if (!has_proc(fd, st))
		return "it is not found in /proc/thread-self/fd; is /proc mounted?";
	return NULL;
}

static int open_checked(const char *path)
{
	const char *objection;
	struct stat st;
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		objection = errno == ENOTDIR ? "it is no directory, or a symbolic link"
					     : strerror(errno);
	else
		objection = find_fault(fd, &st);
	if (objection)
		core_log(CORE_LOG_ERROR, "socket_dir=%s cannot be used: %s", path, objection);
	rc = objection ? -ENODEV : soft_fd_add(fd);
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

int shm_dir_open(const char *path, bool is_user_only, struct shm_dir **dir_out)
{
	struct shm_dir *dir = core_slab_alloc(sizeof(*dir));

	if (!dir)
		return -ENOMEM;
	dir->is_user_only = is_user_only;
	dir->fd = open_checked(path);
	if (dir->fd < 0) {
		int rc = dir->fd;

		core_slab_free(dir, sizeof(*dir));
		return rc;
	}
	*dir_out = dir;
	return 0;
}

void shm_dir_close(struct shm_dir *dir)
{
	if (!dir)
		return;
	soft_fd_close(dir->fd);
	core_slab_free(dir, sizeof(*dir));
}

bool shm_dir_can_name(const union core_sockaddr *address)
{
	return !soft_address_is_loopback(address) &&
	       !(address->sa.sa_family == AF_INET6 &&
		 IN6_IS_ADDR_LINKLOCAL(&address->in6.sin6_addr));
}

/* --- connecting --- */

/* Is it a socket that we may connect to? 0 or -errno. */
static int check_socket(const struct shm_dir *dir, int file)
{
	struct stat st;

	if (fstat(file, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	return dir->is_user_only && st.st_uid != 0 && st.st_uid != geteuid() ? -EACCES : 0;
}

int shm_dir_connect(const struct shm_dir *dir, int fd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	/* the file that is checked and the one that is connected to are the same */
	int file = openat(dir->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (file < 0)
		return -errno;
	rc = check_socket(dir, file);
	if (rc == 0) {
		snprintf(address.sun_path, sizeof(address.sun_path), PROC_FD, file);
		rc = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	}
	close(file);
	return rc;
}

/* --- names that are left --- */

/* Does nobody listen there? */
static bool is_dead(const struct shm_dir *dir, const char *name)
{
	const struct shm_dir any = {.fd = dir->fd};
	bool is_refused;
	int fd = soft_fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	is_refused = shm_dir_connect(&any, fd, name) == -ECONNREFUSED;
	soft_fd_close(fd);
	return is_refused;
}

/* 0: the name is free; -EADDRINUSE. With the directory locked. */
static int delete_dead(const struct shm_dir *dir, const char *name)
{
	struct stat st;

	if (fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISSOCK(st.st_mode) && !is_dead(dir, name))
		return -EADDRINUSE;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid()) {
		core_log(CORE_LOG_ERROR, "socket_dir: %s is %s, which is not deleted", name,
			 S_ISSOCK(st.st_mode) ? "left by another user" : "no socket");
		return -EADDRINUSE;
	}
	return unlinkat(dir->fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* A child that is about to exec may have a copy of the descriptor: so the lock is released. */
static int delete_dead_locked(const struct shm_dir *dir, const char *name)
{
	int lock = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (lock < 0)
		return -errno;
	if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
	} else {
		rc = delete_dead(dir, name);
		(void)flock(lock, LOCK_UN);
	}
	close(lock);
	return rc;
}

/* --- listening --- */

/* Gives the socket a name that nobody knows, and lets it listen. */
static int listen_unknown(const struct shm_dir *dir, int fd, struct shm_dir_file *file_out)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	uint64_t number;
	int len;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return errno == EINTR ? -EBUSY : -errno;
	snprintf(file_out->name, sizeof(file_out->name), ".opendat-%016" PRIx64, number);
	len = snprintf(address.sun_path, sizeof(address.sun_path), PROC_FD "/%s", dir->fd,
		       file_out->name);
	if (len < 0 || (size_t)len >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (fchmodat(dir->fd, file_out->name, SOCKET_MODE, 0) < 0 ||
	    fstatat(dir->fd, file_out->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    listen(fd, SOMAXCONN) < 0) {
		int rc = -errno;

		unlinkat(dir->fd, file_out->name, 0);
		return rc;
	}
	file_out->device = st.st_dev;
	file_out->inode = st.st_ino;
	return 0;
}

/* Fails if the name exists. */
static int give_name(const struct shm_dir *dir, const char *from, const char *name)
{
	return linkat(dir->fd, from, dir->fd, name, 0) < 0 ? -errno : 0;
}

static int refuse_to_listen(const char *name, int rc)
{
	switch (rc) {
	case -EADDRINUSE:
	case -EBUSY:
	case -ENOMEM:
	case -ENOSPC:
	case -EMFILE:
	case -ENFILE:
		return rc;
	default:
		core_log(CORE_LOG_ERROR, "socket_dir: %s cannot be made: %s", name, strerror(-rc));
		return -ENODEV;
	}
}

int shm_dir_listen(const struct shm_dir *dir, int fd, const char *name,
		   struct shm_dir_file *file_out)
{
	struct shm_dir_file first;
	int rc = listen_unknown(dir, fd, &first);

	if (rc < 0)
		return refuse_to_listen(name, rc);
	rc = give_name(dir, first.name, name);
	if (rc == -EEXIST) {
		rc = delete_dead_locked(dir, name);
		if (rc == 0)
			rc = give_name(dir, first.name, name);
	}
	unlinkat(dir->fd, first.name, 0);
	if (rc < 0)
		return refuse_to_listen(name, rc == -EEXIST ? -EADDRINUSE : rc);
	*file_out = first;
	snprintf(file_out->name, sizeof(file_out->name), "%s", name);
	return 0;
}

void shm_dir_remove(const struct shm_dir *dir, const struct shm_dir_file *file)
{
	struct stat st;

	if (fstatat(dir->fd, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == file->device && st.st_ino == file->inode)
		unlinkat(dir->fd, file->name, 0);
}
