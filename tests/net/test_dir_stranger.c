// SPDX-License-Identifier: BSD-2-Clause
/*
 * A stranger, who is another user of the host, and what it can leave in a directory that everybody
 * may write to.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ability.h"
#include "dir.h"
#include "log_util.h"
#include "stream.h"

#define QUAL 0x7a6bu
#define STRANGER 1234u
#define PORTS 8u /* from FIRST_PORT on, the only ones that the kernel chooses from */
#define FIRST_PORT 40000u

/* A child of that user runs the function. */
static void as_stranger(void (*act)(unsigned kind), unsigned kind)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0) {
		if (setresuid(STRANGER, STRANGER, STRANGER) != 0)
			_exit(1);
		act(kind);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The name of a service point, in the directory itself. */
static const char *flat_name(DAT_CONN_QUAL qual)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s%s", dir_shared, strrchr(dir_file(FIRST, qual), '/'));
	return path;
}

/* A socket that listens there. */
static int listen_at(DAT_CONN_QUAL qual)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(name.sun_path, flat_name(qual));
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(chmod(name.sun_path, 0666), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* --- names outside of the folder --- */

static void squat(unsigned unused)
{
	(void)unused;
	for (unsigned port = FIRST_PORT; port < FIRST_PORT + PORTS; port++)
		close(listen_at(port));
}

static bool set_ports(unsigned first, unsigned last)
{
	return net_run("echo %u %u 2>/dev/null > /proc/sys/net/ipv4/ip_local_port_range", first,
		       last);
}

static void choose(const struct net_host *host)
{
	struct dt_listener listener = {.qual = 0};
	struct dt_ia ia;

	(void)host;
	assert_true(set_ports(FIRST_PORT, FIRST_PORT + PORTS - 1));
	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	setenv("DAT_TRANSPORT", "shm", 1);
	dt_ia_open(&ia);
	listener.evd = dt_evd_create(&ia, 8, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(ia.ia, &listener.qual, listener.evd, DAT_PSP_CONSUMER_FLAG,
				 &listener.psp));
	assert_in_range(listener.qual, FIRST_PORT, FIRST_PORT + PORTS - 1);
	assert_true(dir_has(dir_file(FIRST, listener.qual)));
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-65: a stranger has left a dead name for each number that could be chosen */
static void psp_create_any__dead_names_of_a_stranger__not_in_the_way(void **state)
{
	(void)state;
	/* of the bridge, where it does nothing */
	ABILITY_NEED(set_ports(FIRST_PORT, FIRST_PORT + PORTS - 1),
		     "settings of the kernel cannot be written");
	ABILITY_NEED(dir_share_with(STRANGER), "no other user can be taken");
	as_stranger(squat, 0);
	dir_run(1, 0, choose);
	dir_share_with(0);
}

/* The second host connects to the first one. */
static void meet_over_tcp(const struct net_host *host)
{
	struct sockaddr_storage address;
	struct dt_listener listener;
	uint64_t unused[NET_MAX];
	struct stream stream;
	struct dt_ia ia;

	dt_ia_open(&ia);
	if (host->index == FIRST)
		dir_listen(&ia, QUAL, &listener);
	net_exchange(host, 0, unused);
	stream_create(&stream, &ia, 1);
	net_address(host->family, FIRST, &address);
	if (host->index == FIRST)
		stream_accept(&stream, dt_request(&listener));
	else
		stream_connect(&stream, &address, QUAL);
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(stream_is_over_tcp(&stream));
	net_exchange(host, 0, unused);
	if (host->index == SECOND)
		dt_ok(dat_ep_disconnect(stream.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	stream_free(&stream);
	if (host->index == FIRST)
		dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* The first host does not have the directory, as a remote one. */
static void meet_past_bait(const struct net_host *host)
{
	int bait = -1;

	if (host->index == SECOND) {
		setenv("DAT_SOCKET_DIR", dir_shared, 1);
		bait = listen_at(QUAL);
		assert_int_equal(fchownat(AT_FDCWD, flat_name(QUAL), STRANGER, STRANGER, 0), 0);
	}
	meet_over_tcp(host);
	if (host->index == SECOND) {
		assert_int_equal(accept4(bait, NULL, NULL, SOCK_CLOEXEC), -1);
		assert_int_equal(errno, EAGAIN);
		close(bait);
	}
}

/* IWCM-65: a stranger listens under the name of a remote host, and hears nothing */
static void connect__name_of_a_stranger__over_tcp(void **state)
{
	(void)state;
	ABILITY_NEED(dir_share_with(STRANGER), "no other user can be taken");
	dir_run(HOSTS, 2, meet_past_bait);
	dir_share_with(0);
}

/* --- the folder --- */

enum { FOLDER, FILE_THERE, LINK, OPEN_TO_ALL, KINDS };

static void take_folder(unsigned kind)
{
	if (kind == FILE_THERE)
		_exit(mknod(dir_own, S_IFREG | 0700, 0) != 0);
	if (kind == LINK)
		_exit(symlink(dir_folder, dir_own) != 0);
	_exit(mkdir(dir_own, 0700) != 0);
}

static unsigned lines_of(const char *text, const char *words)
{
	unsigned count = 0;

	for (; (text = strstr(text, words)); text++)
		count++;
	return count;
}

static void meet_without_folder(const struct net_host *host)
{
	static const char *const reasons[] = {
		[FOLDER] = "it is of another user",
		[FILE_THERE] = "it is no directory, or a symbolic link",
		[LINK] = "it is no directory, or a symbolic link",
		[OPEN_TO_ALL] = "its mode is not 0700",
	};
	const char *reason = reasons[atoi(getenv("KIND"))];
	const char *log;

	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	log_capture_start();
	log_begin();
	meet_over_tcp(host);
	log = log_end();
	if (lines_of(log, dir_own) != 1 || lines_of(log, reason) != 1)
		fail_msg("not once \"%s\" and \"%s\": %s", dir_own, reason, log);
}

static void run_hosts(net_fn fn)
{
	struct net net;

	net_start(&net, HOSTS, NET_IPV4, fn);
	net_pass_on(&net);
	net_pass_on(&net);
	net_join(&net);
}

/* IWCM-62: the folder of our user is not ours: nothing is looked up there */
static void connect__folder_made_by_a_stranger__over_tcp(void **state)
{
	char kind_text[8];

	(void)state;
	for (unsigned kind = 0; kind < KINDS; kind++) {
		ABILITY_NEED(dir_share_with(STRANGER), "no other user can be taken");
		if (kind == OPEN_TO_ALL)
			assert_int_equal(mkdir(dir_own, 0700) || chmod(dir_own, 0777), 0);
		else
			as_stranger(take_folder, kind);
		snprintf(kind_text, sizeof(kind_text), "%u", kind);
		setenv("KIND", kind_text, 1);
		run_hosts(meet_without_folder);
		dir_share_with(0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psp_create_any__dead_names_of_a_stranger__not_in_the_way),
		cmocka_unit_test(connect__name_of_a_stranger__over_tcp),
		cmocka_unit_test(connect__folder_made_by_a_stranger__over_tcp),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, dir_make, dir_remove);
}
