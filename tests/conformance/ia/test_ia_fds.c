// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that runs without standard input, output and error: the library keeps none of their
 * numbers, so what the program prints reaches none of its descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "ability.h"
#include "conf.h"
#include "copy_path.h"

#define LEN 65536u
#define LOOKS 5000 /* 1 ms apart */

/* A copy of standard error, which is closed. */
static int messages = -1;

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

/* The kernel gives a new descriptor the lowest number; the library's threads then renumber it. */
static void check_none(const char *after)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		for (unsigned looks = 0; is_open(fd); looks++) {
			if (looks == LOOKS) {
				dprintf(messages, "after %s: descriptor %d is open\n", after, fd);
				_exit(1);
			}
			poll(NULL, 0, 1);
		}
	}
}

static void check_memory(struct dt_ia *ia)
{
	DAT_CNO_HANDLE cno;
	void *memory;
	int fd;

	dt_ok(dat_opendat_mem_alloc(LEN, DAT_OPENDAT_MEM_DEFAULT, &memory));
	check_none("dat_opendat_mem_alloc");
	dt_ok(dat_opendat_mem_free(memory));
	dt_ok(dat_cno_create(ia->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_opendat_cno_fd(cno, &fd));
	check_none("dat_opendat_cno_fd");
	dt_ok(dat_cno_free(cno));
}

static void run_without(struct dt_peer *peer, void *arg)
{
	struct dt_listener listener;
	struct dt_pair pair;
	struct dt_buf buf;
	struct dt_ia ia;
	void *memory;

	(void)peer;
	(void)arg;
	messages = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
	dt_ia_open(&ia);
	check_none("dat_ia_open");
	check_memory(&ia);
	dt_listen(&ia, &listener);
	check_none("dat_psp_create");
	dt_unlisten(&listener);
	dt_ia_close(&ia);
	check_none("dat_ia_close");

	dt_pair_open(&pair);
	check_none("a connection");
	/* the harness would keep a descriptor of the memory */
	dt_ok(dat_opendat_mem_alloc((DAT_VLEN)2 * LEN, DAT_OPENDAT_MEM_DEFAULT, &memory));
	dt_lmr_create(&pair.ia, pair.ia.pz, memory, 2 * LEN, DAT_MEM_PRIV_ALL_FLAG, &buf);
	if (!getenv("DAT_TRANSPORT"))
		dt_map(&pair.a, dt_seg(&buf, 0, 1), dt_rseg(&buf, LEN, 1));
	for (unsigned i = 0; i < 8; i++) {
		conf_send(&pair, dt_seg(&buf, 0, LEN), dt_seg(&buf, LEN, LEN));
		conf_write(&pair, dt_seg(&buf, 0, LEN), dt_rseg(&buf, LEN, LEN));
		conf_read(&pair, dt_seg(&buf, 0, LEN), dt_rseg(&buf, LEN, LEN));
		check_none("a transfer");
	}
	dt_buf_free(&buf);
	dt_ok(dat_opendat_mem_free(memory));
	dt_pair_close(&pair);
	check_none("the end");
}

/* GEN-40 */
static void standard_descriptors__closed__not_taken(void **state)
{
	struct dt_peer peer;

	(void)state;
	if (!ability_threads_in_child())
		copy_path_skip();
	ABILITY_NEED(ability_threads_in_child(), "no threads in a child");
	dt_peer_start(&peer, run_without, NULL);
	dt_peer_join(&peer);
}

/* GEN-40 */
static void standard_descriptors__closed_over_tcp__not_taken(void **state)
{
	if (dt_is_verbs())
		skip();
	setenv("DAT_TRANSPORT", "tcp", 1);
	standard_descriptors__closed__not_taken(state);
	unsetenv("DAT_TRANSPORT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(standard_descriptors__closed__not_taken),
		cmocka_unit_test(standard_descriptors__closed_over_tcp__not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
