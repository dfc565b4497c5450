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
#include <unistd.h>

#include <cmocka.h>

#include "main_ended.h"
#include "soft/fds.h"

#define NAME "opendat.1-192.0.2.1-7"
#define RIVALS 4
#define ROUNDS 300

static char folder[] = "/tmp/opendat-names-XXXXXX";
static char own[64]; /* that of this user */
static struct shm_dir dir;

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
	int rc = shm_dir_connect(&dir, fd, name);

	soft_fd_close(fd);
	return rc;
}

/* A name that nobody serves. */
static void leave_name(void)
{
	struct shm_dir_file file;
	int fd = new_socket();

	assert_int_equal(shm_dir_listen(&dir, fd, NAME, &file), 0);
	soft_fd_close(fd);
	assert_int_equal(try_connect(NAME), -ECONNREFUSED);
}

static int listen_once(void)
{
	struct shm_dir_file file;
	int fd = new_socket();
	int rc = shm_dir_listen(&dir, fd, NAME, &file);

	if (rc == 0)
		shm_dir_remove(&dir, &file);
	soft_fd_close(fd);
	return rc;
}

static bool exists(const char *name)
{
	struct stat st;

	return fstatat(dir.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool open_own(void)
{
	const union core_sockaddr address = {
		.in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)}};

	return shm_dir_open(folder, &address, &dir) == 0 && dir.fd >= 0;
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
	soft_fd_close(dir.fd);
	/* fails if a file is left */
	return fcntl(dir.fd, F_GETFD) != -1 || rmdir(own) || rmdir(folder);
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
	while ((rc = shm_dir_listen(&dir, fd, NAME, &file)) == -EBUSY) {
		soft_fd_close(fd);
		fd = new_socket();
	}
	pthread_barrier_wait(&race->barrier);
	if (rc == 0) {
		struct stat st;

		race->winners++;
		if (fstatat(dir.fd, NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != file.inode)
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
	assert_int_equal(unlinkat(dir.fd, NAME, 0), 0);
}

/* IWCM-63: as long as it listens; and it is found */
static void listen__living_name__in_use(void **state)
{
	struct shm_dir_file file;
	int fd = new_socket();

	(void)state;
	assert_int_equal(shm_dir_listen(&dir, fd, NAME, &file), 0);
	assert_int_equal(try_connect(NAME), 0);
	assert_int_equal(listen_once(), -EADDRINUSE);
	assert_int_equal(try_connect(NAME), 0);
	shm_dir_remove(&dir, &file);
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

	if (!open_own() || shm_dir_listen(&dir, fd, NAME, &file) != 0)
		return false;
	is_found = try_connect(NAME) == 0;
	shm_dir_remove(&dir, &file);
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
	assert_int_equal(shm_dir_listen(&dir, fd, NAME, &first), 0);
	assert_int_equal(unlinkat(dir.fd, NAME, 0), 0);
	shm_dir_remove(&dir, &first);
	assert_int_equal(shm_dir_listen(&dir, other, NAME, &second), 0);
	shm_dir_remove(&dir, &first);
	assert_int_equal(try_connect(NAME), 0);
	shm_dir_remove(&dir, &second);
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
	soft_fd_close(dir.fd);
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
	assert_int_equal(shm_dir_listen(&dir, fd, NAME, &file), 0);
	umask(before);
	assert_int_equal(fstatat(dir.fd, NAME, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	shm_dir_remove(&dir, &file);
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

/* --- somebody deletes the folder --- */

static void delete_folder(void)
{
	assert_int_equal(rmdir(own), 0);
	assert_int_equal(access(own, F_OK), -1);
}

static mode_t mode_of_own(void)
{
	struct stat st;

	assert_int_equal(stat(own, &st), 0);
	return st.st_mode;
}

/* IWCM-62 */
static void listen__folder_deleted__made_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		delete_folder();
		assert_int_equal(listen_once(), 0);
		assert_int_equal(mode_of_own(), S_IFDIR | 0700);
	}
}

/* IWCM-62: a service point of a process that has made the new one */
static void connect__folder_deleted__new_one_is_used(void **state)
{
	const struct shm_dir old = dir;
	struct shm_dir_file file;
	int fd = new_socket(), caller = new_socket();

	(void)state;
	delete_folder();
	assert_true(open_own());
	assert_int_equal(shm_dir_listen(&dir, fd, NAME, &file), 0);
	assert_int_equal(shm_dir_connect(&old, caller, NAME), 0);
	shm_dir_remove(&dir, &file);
	soft_fd_close(caller);
	soft_fd_close(fd);
	soft_fd_close(old.fd);
	assert_int_equal(fcntl(old.fd, F_GETFD), -1);
}

/* IWCM-62 */
static void listen__whole_directory_deleted__no_folder(void **state)
{
	(void)state;
	delete_folder();
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(listen_once(), -EACCES);
	assert_int_equal(try_connect(NAME), -ENOENT);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(try_connect(NAME), -ENOENT);
	assert_int_equal(listen_once(), 0);
}

/* The number of the network namespace in the names of an adapter; 0: there is none. */
static uint64_t netns_for(const char *given, int family, const char *text)
{
	union core_sockaddr address = {.sa = {.sa_family = (sa_family_t)family}};
	struct shm_dir opened;

	assert_int_equal(inet_pton(family, text,
				   family == AF_INET ? (void *)&address.in.sin_addr
						     : (void *)&address.in6.sin6_addr),
			 1);
	assert_int_equal(shm_dir_open(given, &address, &opened), 0);
	assert_true(opened.fd >= 0);
	soft_fd_close(opened.fd);
	return opened.netns;
}

/* IWCM-66: other containers have these, too */
static void open__addresses_of_one_host_or_link__named_with_the_namespace(void **state)
{
	struct stat netns;

	(void)state;
	assert_int_equal(stat("/proc/self/ns/net", &netns), 0);
	assert_int_equal(netns_for(folder, AF_INET, "127.0.0.1"), netns.st_ino);
	assert_int_equal(netns_for(folder, AF_INET6, "::1"), netns.st_ino);
	assert_int_equal(netns_for(folder, AF_INET6, "fe80::1"), netns.st_ino);
	assert_int_equal(netns_for(folder, AF_INET, "192.0.2.1"), 0);
	assert_int_equal(netns_for(folder, AF_INET6, "fd00::1"), 0);
}

/* IWCM-01: no directory is given, and containers are not to meet */
static void open__no_directory_given__named_with_the_namespace(void **state)
{
	(void)state;
	assert_int_not_equal(netns_for("", AF_INET, "192.0.2.1"), 0);
}

/* CONN-GEN-08: every address and qualifier has a name of its own, which fits */
/* So many names are no reason to look at any. */
#define MANY 256u

static unsigned count_names(void)
{
	unsigned count = 0;
	char name[64];

	for (unsigned i = 0; i < 2 * MANY; i++) {
		snprintf(name, sizeof(name), "opendat.1-192.0.2.2-%x", i);
		count += exists(name);
	}
	return count;
}

/* Names of a process that was killed. */
static void leave_names(unsigned count)
{
	struct shm_dir_file file;
	char name[64];

	for (unsigned i = 0; i < count; i++) {
		int fd = new_socket();

		snprintf(name, sizeof(name), "opendat.1-192.0.2.2-%x", i);
		assert_int_equal(shm_dir_listen(&dir, fd, name, &file), 0);
		soft_fd_close(fd);
	}
}

static void delete_names(void)
{
	char name[64];

	for (unsigned i = 0; i < 2 * MANY; i++) {
		snprintf(name, sizeof(name), "opendat.1-192.0.2.2-%x", i);
		(void)unlinkat(dir.fd, name, 0);
	}
}

static void open_again(void)
{
	soft_fd_close(dir.fd);
	assert_true(open_own());
}

/* IWCM-63 */
static void open__many_names_of_dead_processes__deleted_in_time(void **state)
{
	struct shm_dir_file file;
	int fd = new_socket();

	(void)state;
	assert_int_equal(shm_dir_listen(&dir, fd, NAME, &file), 0);
	assert_int_equal(mkfifoat(dir.fd, "opendat.1-192.0.2.3-1", 0600), 0);
	leave_names(2 * MANY);
	/* each time some are looked at, from a random one on */
	for (unsigned i = 0; i < 400 && count_names() >= MANY; i++)
		open_again();
	assert_in_range(count_names(), 1, MANY - 1);
	assert_true(exists("opendat.1-192.0.2.3-1"));
	assert_int_equal(try_connect(NAME), 0);
	assert_int_equal(unlinkat(dir.fd, "opendat.1-192.0.2.3-1", 0), 0);
	delete_names();
	shm_dir_remove(&dir, &file);
	soft_fd_close(fd);
}

static void open__few_names__left_alone(void **state)
{
	(void)state;
	leave_names(MANY);
	for (unsigned i = 0; i < 20; i++)
		open_again();
	assert_int_equal(count_names(), MANY);
	delete_names();
}

static void name__address_and_qualifier__documented_form(void **state)
{
	const struct shm_dir shared = {.fd = -1}, one = {.fd = -1, .netns = 0xf0000098};
	const struct shm_dir most = {.fd = -1, .netns = UINT64_MAX};
	union core_sockaddr address = {.in = {.sin_family = AF_INET}};
	char name[SHM_DIR_NAME_MAX];

	(void)state;
	address.in.sin_addr.s_addr = htonl(0xc0000201);
	shm_dir_name(&shared, &address, 0x1f90, name);
	assert_string_equal(name, "opendat.1-192.0.2.1-1f90");
	shm_dir_name(&one, &address, 0x1f90, name);
	assert_string_equal(name, "opendat.1-192.0.2.1@f0000098-1f90");
	address = (union core_sockaddr){.in6 = {.sin6_family = AF_INET6}};
	assert_int_equal(inet_pton(AF_INET6, "fd00::1", &address.in6.sin6_addr), 1);
	shm_dir_name(&shared, &address, UINT64_C(0xfedcba9876543210), name);
	assert_string_equal(name, "opendat.1-fd00::1-fedcba9876543210");
	memset(&address.in6.sin6_addr, 0xfd, sizeof(address.in6.sin6_addr));
	shm_dir_name(&most, &address, UINT64_MAX, name);
	assert_string_equal(name + strlen(name) - 17, "-ffffffffffffffff");
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
		folder_test(listen__folder_deleted__made_again),
		folder_test(connect__folder_deleted__new_one_is_used),
		folder_test(listen__whole_directory_deleted__no_folder),
		folder_test(open__many_names_of_dead_processes__deleted_in_time),
		folder_test(open__few_names__left_alone),
		folder_test(open__addresses_of_one_host_or_link__named_with_the_namespace),
		cmocka_unit_test(open__no_directory_given__named_with_the_namespace),
		cmocka_unit_test(name__address_and_qualifier__documented_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
