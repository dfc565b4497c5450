// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of sockets in a directory (dir.h). All calls name a file by the descriptor of our folder,
 * so nobody can exchange the folder later. Those that take an address of a socket go
 * through /proc/thread-self/fd, and a long path fits, too. /proc/self/fd is empty when the main
 * thread has ended.
 */
#include "soft/shm/connect/dir.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/log.h"
#include "shared/fd.h"
#include "soft/address.h"
#include "soft/fds.h"

#define DEFAULT_DIR "/dev/shm"
#define NETNS "/proc/thread-self/ns/net"
#define PROC_FD "/proc/thread-self/fd/%d"
#define OWN_NAME "opendat-%u" /* with the number of the user */
#define OWN_MODE 0700
#define SOCKET_MODE 0600

#define NAME_START "opendat.1-"
/*
 * Names that dead processes have left are deleted when there are more than so many names, */
#define NAMES_MANY 256u
/* and so many are looked at each time. */
#define NAMES_LOOKED_AT 64u
#define DEFAULT_OVERFLOW_UID 65534u

/* --- the directory --- */

static uint32_t read_overflow_uid(void)
{
	int fd = opendat_fd_move(open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC));
	char text[16] = "";
	uint32_t uid = 0;

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		uid = (uint32_t)strtoul(text, NULL, 10);
	if (fd >= 0)
		close(fd);
	return uid ? uid : DEFAULT_OVERFLOW_UID;
}

bool shm_is_nobody(uid_t uid)
{
	static _Atomic uint32_t known; /* 0: not read yet */
	uint32_t nobody = atomic_load_explicit(&known, memory_order_relaxed);

	if (!nobody) {
		nobody = read_overflow_uid();
		atomic_store_explicit(&known, nobody, memory_order_relaxed);
	}
	return uid == nobody;
}

/* False: the C library's view of /proc is not that of this process. */
static bool has_proc(int fd, const struct stat *st)
{
	char path[40];
	struct stat same;

	snprintf(path, sizeof(path), PROC_FD, fd);
	return stat(path, &same) == 0 && same.st_dev == st->st_dev && same.st_ino == st->st_ino;
}

/* Why the directory cannot be used; NULL: it can. */
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

/* The same of the folder of our user. */
static const char *find_fault_of_own(int fd, const struct stat *st)
{
	(void)fd;
	if (st->st_uid != geteuid())
		return "it is of another user";
	if (shm_is_nobody(st->st_uid))
		return "its user may be any that is not mapped in this user namespace";
	if ((st->st_mode & 0777) != OWN_MODE)
		return "its mode is not 0700";
	return NULL;
}

/* Opens a folder that has no fault; -errno, -EPERM: it has one. */
static int open_checked(int parent, const char *path,
			const char *(*fault_of)(int fd, const struct stat *st),
			const char **fault_out)
{
	int fd = opendat_fd_move(
		openat(parent, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	struct stat st;
	int rc = -EPERM;

	if (fd < 0 || fstat(fd, &st) < 0) {
		rc = -errno;
		*fault_out =
			rc == -ENOTDIR ? "it is no directory, or a symbolic link" : strerror(-rc);
	} else {
		*fault_out = fault_of(fd, &st);
		if (!*fault_out)
			return fd;
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Opens the folder of our user, and makes it if need be; the same. */
static int open_own(int parent, const char **fault_out)
{
	char name[32];

	snprintf(name, sizeof(name), OWN_NAME, (unsigned)geteuid());
	/* the mask of the process may take bits from the mode */
	if (mkdirat(parent, name, OWN_MODE) < 0 ? errno != EEXIST
						: fchmodat(parent, name, OWN_MODE, 0) < 0) {
		*fault_out = strerror(errno);
		return -errno;
	}
	return open_checked(parent, name, find_fault_of_own, fault_out);
}

/* The folder of our user; -EPERM: there is none that can be used, or another -errno. */
static int open_folder(const char *given)
{
	const char *path = given[0] ? given : DEFAULT_DIR;
	const char *fault = NULL;
	int fd = open_checked(AT_FDCWD, path, find_fault, &fault);
	int own = fd;

	if (fd >= 0) {
		own = open_own(fd, &fault);
		close(fd);
	} else if (given[0]) {
		core_log(CORE_LOG_ERROR, "socket_dir=%s cannot be used: %s", path, fault);
		return -ENODEV;
	}
	if (own == -EMFILE || own == -ENFILE || own == -ENOMEM)
		return own;
	if (own < 0)
		core_log(CORE_LOG_ERROR | CORE_LOG_WARNING,
			 "no shared memory, but TCP: %s/" OWN_NAME " cannot be used: %s", path,
			 (unsigned)geteuid(), fault);
	return own < 0 ? -EPERM : own;
}

static bool is_everywhere(const union core_sockaddr *address)
{
	return soft_address_is_loopback(address) ||
	       (address->sa.sa_family == AF_INET6 &&
		IN6_IS_ADDR_LINKLOCAL(&address->in6.sin6_addr));
}

static void delete_left_names(int dir);

int shm_dir_open(const char *given, const union core_sockaddr *address, struct shm_dir *dir_out)
{
	int fd = open_folder(given);
	struct stat netns = {.st_ino = 0};

	*dir_out = (struct shm_dir){.fd = -1};
	if (fd < 0)
		return fd == -EPERM ? 0 : fd;
	if ((!given[0] || is_everywhere(address)) && stat(NETNS, &netns) < 0) {
		core_log(CORE_LOG_ERROR | CORE_LOG_WARNING,
			 "no shared memory, but TCP: " NETNS ": %s", strerror(errno));
		close(fd);
		return 0;
	}
	soft_fd_begin();
	fd = soft_fd_end(fd);
	if (fd < 0)
		return fd;
	*dir_out = (struct shm_dir){.fd = fd, .netns = netns.st_ino, .given = given};
	delete_left_names(fd);
	return 0;
}

/*
 * True: the folder was deleted, and the descriptor, which other threads may be using, is that of a
 * new one now.
 */
static bool renew(const struct shm_dir *dir)
{
	struct stat st;
	int fd;

	if (fstat(dir->fd, &st) < 0 || st.st_nlink)
		return false;
	fd = open_folder(dir->given);
	return fd >= 0 && soft_fd_replace(dir->fd, fd) == 0;
}

void shm_dir_name(const struct shm_dir *dir, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		  char name_out[SHM_DIR_NAME_MAX])
{
	char text[INET6_ADDRSTRLEN] = "";
	char netns[24] = "";

	if (address->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->in.sin_addr, text, sizeof(text));
	else if (IN6_IS_ADDR_V4MAPPED(&address->in6.sin6_addr))
		inet_ntop(AF_INET, &address->in6.sin6_addr.s6_addr[12], text, sizeof(text));
	else
		inet_ntop(AF_INET6, &address->in6.sin6_addr, text, sizeof(text));
	if (dir->netns)
		snprintf(netns, sizeof(netns), "@%" PRIx64, dir->netns);
	snprintf(name_out, SHM_DIR_NAME_MAX, NAME_START "%s%s-%" PRIx64, text, netns,
		 (uint64_t)qual);
}

/* --- connecting --- */

static int connect_at(int dir, int fd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	/* the file that is checked and the one that is connected to are the same */
	int file = opendat_fd_move(openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	struct stat st;
	int rc;

	if (file < 0)
		return -errno;
	if (fstat(file, &st) < 0) {
		rc = -errno;
	} else if (!S_ISSOCK(st.st_mode)) {
		rc = -ECONNREFUSED;
	} else {
		snprintf(address.sun_path, sizeof(address.sun_path), PROC_FD, file);
		rc = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	}
	close(file);
	return rc;
}

int shm_dir_connect(const struct shm_dir *dir, int fd, const char *name)
{
	int rc = connect_at(dir->fd, fd, name);

	return rc == -ENOENT && renew(dir) ? connect_at(dir->fd, fd, name) : rc;
}

/* --- names that are left --- */

/* Does nobody listen there? */
static bool is_dead(int dir, const char *name)
{
	bool is_refused;
	int fd = soft_fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	is_refused = connect_at(dir, fd, name) == -ECONNREFUSED;
	soft_fd_close(fd);
	return is_refused;
}

/* 0: the name is free; -EADDRINUSE. With the folder locked. */
static int delete_dead(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		core_log(CORE_LOG_ERROR, "socket_dir: %s is no socket, and is not deleted", name);
		return -EADDRINUSE;
	}
	if (!is_dead(dir, name))
		return -EADDRINUSE;
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* A descriptor of the folder that holds its lock; -EBUSY: another process holds it. */
static int lock_folder(int dir)
{
	int lock = opendat_fd_move(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int rc;

	if (lock < 0)
		return -errno;
	if (flock(lock, LOCK_EX | LOCK_NB) == 0)
		return lock;
	rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
	close(lock);
	return rc;
}

/* A child that is about to exec may have a copy of the descriptor: so the lock is released. */
static void unlock_folder(int lock)
{
	(void)flock(lock, LOCK_UN);
	close(lock);
}

static int delete_dead_locked(int dir, const char *name)
{
	int lock = lock_folder(dir);
	int rc;

	if (lock < 0)
		return lock;
	rc = delete_dead(dir, name);
	unlock_folder(lock);
	return rc;
}

static bool is_name(const struct dirent *entry)
{
	return strncmp(entry->d_name, NAME_START, strlen(NAME_START)) == 0;
}

/* How many names are in the folder? */
static uint32_t count_names(DIR *list)
{
	const struct dirent *entry;
	uint32_t count = 0;

	while ((entry = readdir(list)) != NULL)
		count += is_name(entry);
	return count;
}

/* Deletes the dead ones among those names, from that one on. With the folder locked. */
static void delete_some(int dir, DIR *list, uint32_t first)
{
	const struct dirent *entry;
	uint32_t at = 0;

	rewinddir(list);
	while (at < first + NAMES_LOOKED_AT && (entry = readdir(list)) != NULL)
		if (is_name(entry) && at++ >= first)
			(void)delete_dead(dir, entry->d_name);
}

/*
 * A process that is killed leaves its names. One of them goes when somebody wants it, and many must
 * not fill the directory. To find a dead name means to call it, so few names are left alone.
 */
static void delete_left_names(int dir)
{
	int lock = lock_folder(dir);
	int fd = lock < 0 ? -1 : opendat_fd_move(fcntl(lock, F_DUPFD_CLOEXEC, 0));
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	uint32_t count = list ? count_names(list) : 0;
	uint32_t random;

	if (count > NAMES_MANY && getrandom(&random, sizeof(random), 0) == sizeof(random))
		delete_some(dir, list, random % count);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	if (lock >= 0)
		unlock_folder(lock);
}

/* --- listening --- */

/* Gives the socket a name that nobody knows, and lets it listen. */
static int listen_unknown(int dir, int fd, struct shm_dir_file *file_out)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	uint64_t number;
	int len;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return errno == EINTR ? -EBUSY : -errno;
	snprintf(file_out->name, sizeof(file_out->name), ".opendat-%016" PRIx64, number);
	len = snprintf(address.sun_path, sizeof(address.sun_path), PROC_FD "/%s", dir,
		       file_out->name);
	if (len < 0 || (size_t)len >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (fchmodat(dir, file_out->name, SOCKET_MODE, 0) < 0 ||
	    fstatat(dir, file_out->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    listen(fd, SOMAXCONN) < 0) {
		int rc = -errno;

		unlinkat(dir, file_out->name, 0);
		return rc;
	}
	file_out->device = st.st_dev;
	file_out->inode = st.st_ino;
	return 0;
}

/* Fails if the name exists. */
static int give_name(int dir, const char *from, const char *name)
{
	return linkat(dir, from, dir, name, 0) < 0 ? -errno : 0;
}

static int refuse_to_listen(const char *name, int rc)
{
	switch (rc) {
	case -EACCES:
		core_log(CORE_LOG_ERROR,
			 "socket_dir: %s is not made: this process has changed its user", name);
		return rc;
	case -ENOENT:
		core_log(CORE_LOG_ERROR, "socket_dir: %s is not made: the folder was deleted",
			 name);
		return -EACCES;
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

int shm_dir_listen(const struct shm_dir *folder, int fd, const char *name,
		   struct shm_dir_file *file_out)
{
	int dir = folder->fd;
	struct shm_dir_file first;
	int rc = listen_unknown(dir, fd, &first);

	if (rc == -ENOENT && renew(folder))
		rc = listen_unknown(dir, fd, &first);
	if (rc < 0)
		return refuse_to_listen(name, rc);
	rc = give_name(dir, first.name, name);
	if (rc == -EEXIST) {
		rc = delete_dead_locked(dir, name);
		if (rc == 0)
			rc = give_name(dir, first.name, name);
	}
	unlinkat(dir, first.name, 0);
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
