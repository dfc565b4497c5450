// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of service points in a shared directory: how long they live, what else may be there,
 * and which directories are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ability.h"
#include "dir.h"
#include "log_util.h"

#define QUAL 0x7a6bu
#define OTHER_USER 1234u

/* --- names --- */

/* A socket with a name, as another program may make one. */
static int make_socket(const char *path, int type)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static DAT_PSP_HANDLE expect_in_use(struct dt_ia *ia, DAT_EVD_HANDLE evd)
{
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;

	dt_fails(dat_psp_create(ia->ia, QUAL, evd, DAT_PSP_CONSUMER_FLAG, &psp),
		 DAT_CONN_QUAL_IN_USE);
	return psp;
}

static void keep_names(const struct net_host *host)
{
	const char *path = dir_file(host->index, QUAL);
	struct dt_listener listener;
	struct dt_ia ia;
	struct stat st;
	int fd;

	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	dt_ia_open(&ia);
	dir_listen(&ia, QUAL, &listener);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	(void)expect_in_use(&ia, listener.evd);
	assert_true(dir_has(path));
	dt_unlisten(&listener);
	assert_true(dir_is_empty(dir_own));

	/* a living one of another program */
	fd = make_socket(path, SOCK_SEQPACKET);
	assert_int_equal(listen(fd, 1), 0);
	listener.evd = dt_evd_create(&ia, 8, DAT_EVD_CR_FLAG);
	(void)expect_in_use(&ia, listener.evd);
	assert_true(dir_has(path));
	dt_ok(dat_evd_free(listener.evd));
	/* nor is it in use after its death */
	close(fd);
	dir_listen(&ia, QUAL, &listener);
	dt_unlisten(&listener);
	assert_true(dir_is_empty(dir_own));

	/* closed with a service point */
	dir_listen(&ia, QUAL, &listener);
	assert_true(dir_has(path));
	dt_ia_abort(&ia);
	assert_true(dir_is_empty(dir_own));
}

/* IWCM-63 PSP-CREATE-16: as long as the service point lives, and no longer */
static void psp_create__name_in_directory__lives_with_it(void **state)
{
	(void)state;
	dir_run(1, 0, keep_names);
}

static void be_killed(const struct net_host *host)
{
	struct dt_listener listener;
	struct dt_ia ia;

	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	dt_ia_open(&ia);
	dir_listen(&ia, QUAL, &listener);
	dt_peer_sync(host->test);
	pause();
}

/* IWCM-63: the name that a killed process has left is found by nobody, and is replaced */
static void psp_create__name_of_killed_process__replaced(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 1, NET_IPV4, be_killed);
	dt_peer_sync(&net.host[0]);
	dt_peer_kill(&net.host[0]);
	net.count = 0;
	net_join(&net);
	(void)net_run("ip link del p0 2>/dev/null");
	assert_true(dir_has(dir_file(FIRST, QUAL)));
	dir_run(1, 0, keep_names);
}

static void make_obstacle(const char *path, unsigned kind)
{
	int fd;

	switch (kind) {
	case 0:
		assert_int_equal(mkfifo(path, 0666), 0);
		break;
	case 1:
		assert_int_equal(mkdir(path, 0755), 0);
		break;
	case 2:
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0666);
		assert_true(fd >= 0);
		close(fd);
		break;
	case 3:
		assert_int_equal(symlink("/nowhere", path), 0);
		break;
	default:
		fd = make_socket(path, SOCK_STREAM); /* of another kind */
		assert_int_equal(listen(fd, 1), 0);
		assert_true(fcntl(fd, F_SETFD, 0) == 0); /* open to the end of the process */
	}
}

static void meet_obstacles(const struct net_host *host)
{
	struct dt_listener listener = {.qual = QUAL};
	uint64_t unused[NET_MAX];
	struct dt_ia ia;

	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	setenv("DAT_TRANSPORT", "shm", 1);
	dt_ia_open(&ia);
	listener.evd = dt_evd_create(&ia, 8, DAT_EVD_CR_FLAG);
	for (unsigned kind = 0; kind < 5; kind++) {
		if (host->index == FIRST) {
			make_obstacle(dir_file(FIRST, QUAL), kind);
			(void)expect_in_use(&ia, listener.evd);
			assert_true(dir_has(dir_file(FIRST, QUAL)));
		}
		net_exchange(host, 0, unused);
		if (host->index == SECOND)
			dir_expect_unreachable(host, &ia, QUAL);
		net_exchange(host, 0, unused);
		if (host->index == FIRST)
			assert_int_equal(remove(dir_file(FIRST, QUAL)), 0);
	}
	dt_ok(dat_evd_free(listener.evd));
	dt_ia_close(&ia);
}

/* IWCM-64: what is no socket of ours stays, is not followed, and delays nobody */
static void connect__something_else_under_the_name__left_alone(void **state)
{
	(void)state;
	dir_run(HOSTS, 10, meet_obstacles);
}

static void follow_link(const struct net_host *host)
{
	struct dt_listener listener;
	uint64_t unused[NET_MAX];
	char link[128];
	struct dt_ia ia;

	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	setenv("DAT_TRANSPORT", "shm", 1);
	dt_ia_open(&ia);
	snprintf(link, sizeof(link), "%s", dir_file(FIRST, QUAL + 1));
	if (host->index == FIRST) {
		dir_listen(&ia, QUAL, &listener);
		assert_int_equal(symlink(dir_file(FIRST, QUAL), link), 0);
	}
	net_exchange(host, 0, unused);
	if (host->index == SECOND)
		dir_expect_unreachable(host, &ia, QUAL + 1);
	net_exchange(host, 0, unused);
	if (host->index == FIRST) {
		dt_no_event(listener.evd);
		dt_unlisten(&listener);
		assert_int_equal(unlink(link), 0);
	}
	dt_ia_close(&ia);
}

/* IWCM-64: not even to a service point */
static void connect__symbolic_link__not_followed(void **state)
{
	(void)state;
	dir_run(HOSTS, 2, follow_link);
}

/* --- users --- */

static void serve_as_another_user(const struct net_host *host)
{
	struct dt_listener listener;
	uint64_t unused[NET_MAX];
	struct dt_ia ia;

	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	setenv("DAT_TRANSPORT", "shm", 1);
	if (host->index == FIRST)
		assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	dt_ia_open(&ia);
	if (host->index == FIRST)
		dir_listen(&ia, QUAL, &listener);
	net_exchange(host, 0, unused);
	if (host->index == SECOND)
		dir_expect_unreachable(host, &ia, QUAL);
	net_exchange(host, 0, unused);
	if (host->index == FIRST) {
		dt_no_event(listener.evd);
		dt_unlisten(&listener);
	}
	dt_ia_close(&ia);
}

/* IWCM-65: nobody looks in the folder of another user */
static void connect__service_point_of_another_user__not_found(void **state)
{
	(void)state;
	ABILITY_NEED(dir_share_with(OTHER_USER), "no other user can be taken");
	dir_run(HOSTS, 2, serve_as_another_user);
	dir_share_with(0);
}

static void change_user(const struct net_host *host)
{
	struct dt_listener listener;
	struct dt_ia ia;

	(void)host;
	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	dt_ia_open(&ia);
	assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	dir_listen(&ia, QUAL, &listener);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-65: the folder of the former user is closed to it */
static void psp_create__user_changed__no_name(void **state)
{
	(void)state;
	ABILITY_NEED(dir_share_with(OTHER_USER), "no other user can be taken");
	dir_run(1, 0, change_user);
	dir_share_with(0);
}

/* --- the directory --- */

static void expect_refusal(const char *path, const char *reason)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
	const char *log;

	setenv("DAT_SOCKET_DIR", path, 1);
	log_begin();
	dt_fails_with(dat_ia_open(NET_ADAPTER, 8, &async, &ia), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_DEVICE);
	log = log_end();
	if (!strstr(log, path) || !strstr(log, reason))
		fail_msg("the log lacks \"%s\" or \"%s\": %s", path, reason, log);
}

static void expect_open(const char *path)
{
	struct dt_ia ia;

	setenv("DAT_SOCKET_DIR", path, 1);
	dt_ia_open(&ia);
	dt_ia_close(&ia);
}

static void open_in_vain(const struct net_host *host)
{
	char path[128];
	int fd;

	(void)host;
	log_capture_start();
	snprintf(path, sizeof(path), "%s/missing", dir_folder);
	expect_refusal(path, "No such file");
	expect_refusal("relative", "not an absolute path");
	snprintf(path, sizeof(path), "%s/file", dir_folder);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	assert_true(fd >= 0);
	close(fd);
	expect_refusal(path, "no directory");
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/link", dir_folder);
	assert_int_equal(symlink(dir_shared, path), 0);
	expect_refusal(path, "symbolic link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(chmod(dir_shared, 0775), 0);
	expect_refusal(dir_shared, "sticky");
	assert_int_equal(chmod(dir_shared, 0757), 0);
	expect_refusal(dir_shared, "sticky");
	assert_int_equal(chmod(dir_shared, 01777), 0);
	expect_open(dir_shared);
	assert_int_equal(chmod(dir_shared, 0755), 0);
	expect_open(dir_shared);
	if (chown(dir_shared, OTHER_USER, (gid_t)-1) == 0) {
		expect_refusal(dir_shared, "owner");
		assert_int_equal(chown(dir_shared, 0, (gid_t)-1), 0);
	}
}

/* IWCM-62: who could replace a socket there could be taken for its owner */
static void ia_open__directory_of_others__refused(void **state)
{
	(void)state;
	dir_run(1, 0, open_in_vain);
}

static void listen_on_loopback(const struct net_host *host)
{
	struct dt_listener listener;
	uint64_t unused[NET_MAX];
	struct dt_ia ia;

	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	setenv("DAT_TEST_ADAPTER", "soft-lo", 1);
	dt_ia_open(&ia);
	dir_listen(&ia, QUAL, &listener);
	assert_false(dir_is_empty(dir_own));
	net_exchange(host, 0, unused);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-66: others have the same loopback address */
static void psp_create__loopback_address__not_in_the_way_of_others(void **state)
{
	(void)state;
	dir_run(HOSTS, 1, listen_on_loopback);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psp_create__name_in_directory__lives_with_it),
		cmocka_unit_test(psp_create__name_of_killed_process__replaced),
		cmocka_unit_test(connect__something_else_under_the_name__left_alone),
		cmocka_unit_test(connect__symbolic_link__not_followed),
		cmocka_unit_test(connect__service_point_of_another_user__not_found),
		cmocka_unit_test(psp_create__user_changed__no_name),
		cmocka_unit_test(ia_open__directory_of_others__refused),
		cmocka_unit_test(psp_create__loopback_address__not_in_the_way_of_others),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, dir_make, dir_remove);
}
