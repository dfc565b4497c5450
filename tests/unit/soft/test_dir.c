// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of sockets in a directory: who gets a name that a dead process has left, what is never
 * deleted, and that a failure leaves nothing behind.
 */
#include "soft/shm/connect/dir.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "main_ended.h"
#include "soft/fds.h"
#include "soft/shm/connect/name.h"

#define NAME "opendat.1-192.0.2.1-7"
#define RIVALS 4
#define ROUNDS 300

static char folder[] = "/tmp/opendat-names-XXXXXX";
static char own[64]; /* that of this user */
static int dir;

/* What the stand-ins below return: 0: what the C library does. */
static int listen_error, linkat_error;

int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);

int __wrap_listen(int fd, int backlog)
{
	errno = listen_error;
	return listen_error ? -1 : __real_listen(fd, backlog);
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	errno = linkat_error;
	return linkat_error ? -1 : __real_linkat(from_dir, from, to_dir, to, flags);
}

static int new_socket(void)
{
	int fd;

	soft_fd_begin();
	fd = soft_fd_end(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	assert_true(fd >= 0);
	return fd;
}

static int try_connect(const char *name)
{
	int fd = new_socket();
	int rc = shm_dir_connect(dir, fd, name);

	soft_fd_close(fd);
	return rc;
}

/* A name that nobody serves. */
static void leave_name(void)
{
	struct shm_dir_file file;
	int fd = new_socket();

	assert_int_equal(shm_dir_listen(dir, fd, NAME, &file), 0);
	soft_fd_close(fd);
	assert_int_equal(try_connect(NAME), -ECONNREFUSED);
}

static int listen_once(void)
{
	struct shm_dir_file file;
	int fd = new_socket();
	int rc = shm_dir_listen(dir, fd, NAME, &file);

	if (rc == 0)
		shm_dir_remove(dir, &file);
	soft_fd_close(fd);
	return rc;
}

static bool exists(const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool open_own(void)
{
	const union core_sockaddr address = {
		.in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)}};

	return shm_dir_open(folder, &address, &dir) == 0 && dir >= 0;
}

static int open_folder(void **state)
{
	(void)state;
	strcpy(strrchr(folder, '-') + 1, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(own, sizeof(own), "%s/opendat-%u", folder, (unsigned)geteuid());
	return open_own() ? 0 : -1;
}

static int close_folder(void **state)
{
	(void)state;
	soft_fd_close(dir);
	return rmdir(own) || rmdir(folder); /* fails if a file is left */
}

/* --- who gets a name --- */

struct race {
	pthread_barrier_t barrier;
	_Atomic unsigned winners;
	_Atomic unsigned lost; /* a name was lost to another one while its socket listened */
};

static void compete(struct race *race)
{
	struct shm_dir_file file;
	int fd = new_socket();
	int rc;

	pthread_barrier_wait(&race->barrier);
	while ((rc = shm_dir_listen(dir, fd, NAME, &file)) == -EBUSY) {
		soft_fd_close(fd);
		fd = new_socket();
	}
	pthread_barrier_wait(&race->barrier);
	if (rc == 0) {
		struct stat st;

		race->winners++;
		if (fstatat(dir, NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != file.inode)
			race->lost++;
	} else if (rc != -EADDRINUSE) {
		race->lost++;
	}
	pthread_barrier_wait(&race->barrier);
	/* the winner dies, and leaves its name to the next round */
	soft_fd_close(fd);
	pthread_barrier_wait(&race->barrier);
}

static void *run_rival(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		compete(arg);
	return NULL;
}

/* IWCM-63: many find it dead at the same time; one gets it, and keeps it */
static void listen__dead_name__one_of_many_gets_it(void **state)
{
	struct race race = {.winners = 0};
	pthread_t threads[RIVALS];

	(void)state;
	leave_name();
	assert_int_equal(pthread_barrier_init(&race.barrier, NULL, RIVALS), 0);
	for (unsigned i = 0; i < RIVALS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_rival, &race), 0);
	for (unsigned i = 0; i < RIVALS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&race.barrier);
	assert_int_equal(race.lost, 0);
	assert_int_equal(race.winners, ROUNDS);
	assert_int_equal(unlinkat(dir, NAME, 0), 0);
}

/* IWCM-63: as long as it listens; and it is found */
static void listen__living_name__in_use(void **state)
{
	struct shm_dir_file file;
	int fd = new_socket();

	(void)state;
	assert_int_equal(shm_dir_listen(dir, fd, NAME, &file), 0);
	assert_int_equal(try_connect(NAME), 0);
	assert_int_equal(listen_once(), -EADDRINUSE);
	assert_int_equal(try_connect(NAME), 0);
	shm_dir_remove(dir, &file);
	assert_int_equal(try_connect(NAME), -ENOENT);
	assert_int_equal(listen_once(), 0);
	soft_fd_close(fd);
}

/* A child opens the directory anew, because it does not inherit descriptors of the library. */
static bool is_served(void)
{
	struct shm_dir_file file;
	int fd = new_socket();
	bool is_found;

	if (!open_own() || shm_dir_listen(dir, fd, NAME, &file) != 0)
		return false;
	is_found = try_connect(NAME) == 0;
	shm_dir_remove(dir, &file);
	return is_found;
}

/* IWCM-63: the addresses of sockets are those of the calling thread */
static void listen__main_thread_has_ended__found(void **state)
{
	(void)state;
	assert_true(main_ended_check(is_served));
}

/* only one process deletes names at a time; a name that is free needs no lock */
static void listen__directory_locked__busy(void **state)
{
	int lock = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(lock >= 0);
	leave_name();
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(listen_once(), -EBUSY);
	assert_true(exists(NAME));
	close(lock);
	assert_int_equal(listen_once(), 0);
	lock = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(listen_once(), 0);
	close(lock);
}

/* --- what is not deleted --- */

/* IWCM-63: somebody has deleted our name, and another one has it now */
static void remove__name_of_another_socket__stays(void **state)
{
	struct shm_dir_file first, second;
	int fd = new_socket(), other = new_socket();

	(void)state;
	assert_int_equal(shm_dir_listen(dir, fd, NAME, &first), 0);
	assert_int_equal(unlinkat(dir, NAME, 0), 0);
	shm_dir_remove(dir, &first);
	assert_int_equal(shm_dir_listen(dir, other, NAME, &second), 0);
	shm_dir_remove(dir, &first);
	assert_int_equal(try_connect(NAME), 0);
	shm_dir_remove(dir, &second);
	soft_fd_close(fd);
	soft_fd_close(other);
}

/* --- modes and failures --- */

/* IWCM-62 */
static void open__mask_of_the_process__has_no_effect(void **state)
{
	mode_t before = umask(0777);
	struct stat st;

	(void)state;
	soft_fd_close(dir);
	assert_int_equal(rmdir(own), 0);
	assert_true(open_own());
	umask(before);
	assert_int_equal(lstat(own, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
}

/* the user may call, whatever the mask of the process */
static void listen__mask_of_the_process__has_no_effect(void **state)
{
	mode_t before = umask(0777);
	struct shm_dir_file file;
	int fd = new_socket();
	struct stat st;

	(void)state;
	assert_int_equal(shm_dir_listen(dir, fd, NAME, &file), 0);
	umask(before);
	assert_int_equal(fstatat(dir, NAME, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	shm_dir_remove(dir, &file);
	soft_fd_close(fd);
}

/* nothing is left in the directory */
static void listen__calls_fail__no_file_is_left(void **state)
{
	(void)state;
	listen_error = ENOMEM;
	assert_int_equal(listen_once(), -ENOMEM);
	listen_error = EOPNOTSUPP;
	assert_int_equal(listen_once(), -ENODEV);
	listen_error = 0;
	linkat_error = EPERM;
	assert_int_equal(listen_once(), -ENODEV);
	linkat_error = ENOSPC;
	assert_int_equal(listen_once(), -ENOSPC);
	linkat_error = EEXIST; /* again and again */
	assert_int_equal(listen_once(), -EADDRINUSE);
	linkat_error = 0;
}

/* IWCM-66 */
static void can_name__addresses_of_one_host_or_link__false(void **state)
{
	union core_sockaddr address = {.in = {.sin_family = AF_INET}};

	(void)state;
	address.in.sin_addr.s_addr = htonl(0x7f000001);
	assert_false(shm_dir_can_name(&address));
	address.in.sin_addr.s_addr = htonl(0xc0000201);
	assert_true(shm_dir_can_name(&address));
	address = (union core_sockaddr){.in6 = {.sin6_family = AF_INET6}};
	address.in6.sin6_addr = in6addr_loopback;
	assert_false(shm_dir_can_name(&address));
	address.in6.sin6_addr.s6_addr[0] = 0xfe;
	address.in6.sin6_addr.s6_addr[1] = 0x80;
	assert_false(shm_dir_can_name(&address));
	address.in6.sin6_addr.s6_addr[0] = 0xfd;
	assert_true(shm_dir_can_name(&address));
}

/* CONN-GEN-08: every address and qualifier has a name of its own, which fits */
static void name_file__address_and_qualifier__documented_form(void **state)
{
	union core_sockaddr address = {.in = {.sin_family = AF_INET}};
	struct sockaddr_un name;

	(void)state;
	address.in.sin_addr.s_addr = htonl(0xc0000201);
	shm_name_file(&address, 0x1f90, &name);
	assert_string_equal(name.sun_path, "opendat.1-192.0.2.1-1f90");
	address = (union core_sockaddr){.in6 = {.sin6_family = AF_INET6}};
	assert_int_equal(inet_pton(AF_INET6, "fd00::1", &address.in6.sin6_addr), 1);
	shm_name_file(&address, UINT64_C(0xfedcba9876543210), &name);
	assert_string_equal(name.sun_path, "opendat.1-fd00::1-fedcba9876543210");
	memset(&address.in6.sin6_addr, 0xfd, sizeof(address.in6.sin6_addr));
	shm_name_file(&address, UINT64_MAX, &name);
	assert_true(strlen(name.sun_path) < SHM_DIR_NAME_MAX);
}

#define folder_test(f) cmocka_unit_test_setup_teardown(f, open_folder, close_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		folder_test(listen__dead_name__one_of_many_gets_it),
		folder_test(listen__living_name__in_use),
		folder_test(listen__main_thread_has_ended__found),
		folder_test(listen__directory_locked__busy),
		folder_test(open__mask_of_the_process__has_no_effect),
		folder_test(remove__name_of_another_socket__stays),
		folder_test(listen__mask_of_the_process__has_no_effect),
		folder_test(listen__calls_fail__no_file_is_left),
		cmocka_unit_test(name_file__address_and_qualifier__documented_form),
		cmocka_unit_test(can_name__addresses_of_one_host_or_link__false),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
