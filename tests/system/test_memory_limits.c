// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes whose address space is limited (RLIMIT_AS), and processes that lock all their memory
 * (mlockall), as real-time programs do, with and without a limit (RLIMIT_MEMLOCK).
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf.h"

#define MIB ((rlim_t)1 << 20)
#define OPEN_NEEDS (24 * MIB) /* opendat(7): of an open adapter */
#define PEER_NEEDS (16 * MIB) /* of a peer's process */
#define REST (2 * MIB)	      /* of this test itself */
#define LOCKED_MOST (8 * MIB) /* with the libraries that are loaded */
#define LEN 65536u
#define HANDLES 2000

/* A value of /proc/self/status, in bytes. */
static rlim_t status_value(const char *format)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	bool is_found = false;
	char line[256];

	assert_non_null(file);
	while (!is_found && fgets(line, sizeof(line), file))
		is_found = sscanf(line, format, &kib) == 1;
	fclose(file);
	assert_true(is_found);
	return (rlim_t)kib << 10;
}

/* Opens, connects, transfers, and closes. */
static void use_everything(void)
{
	struct dt_pair pair;
	struct dt_buf from, to;
	DAT_CNO_HANDLE cno[HANDLES];

	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &from, LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&pair.ia, pair.ia.pz, &to, LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(from.p, LEN, 1);
	conf_write(&pair, dt_seg(&from, 0, LEN), dt_rseg(&to, 0, LEN));
	dt_check_pattern(to.p, LEN, 1);
	for (size_t i = 0; i < HANDLES; i++)
		dt_ok(dat_cno_create(pair.ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno[i]));
	for (size_t i = 0; i < HANDLES; i++)
		dt_ok(dat_cno_free(cno[i]));
	dt_buf_free(&from);
	dt_buf_free(&to);
	dt_pair_close(&pair);
}

/* --- the address space --- */

enum success {
	NOTHING,
	OPENS,	  /* dat_ia_open succeeds */
	CONNECTS, /* all the rest succeeds, too */
	BAD,	  /* what must never happen */
};

/* In a child. A check that fails ends it by SIGABRT. */
static enum success try_address_space(rlim_t bytes)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
	ret = dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &async, &ia);
	if (ret != DAT_SUCCESS)
		return DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ? NOTHING : BAD;
	if (dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS)
		return BAD;
	signal(SIGABRT, SIG_DFL);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	use_everything();
	return CONNECTS;
}

/* What a process with that address space can do. */
static enum success with_address_space(rlim_t bytes)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_int_not_equal(child, -1);
	if (!child)
		_exit(try_address_space(bytes));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
		return OPENS;
	assert_true(WIFEXITED(status));
	return (enum success)WEXITSTATUS(status);
}

/* IA-OPEN-33 IA-OPEN-45: what works with some address space works with more of it. */
static void ia_open__each_limit_of_address_space__monotonic(void **state)
{
	const rlim_t used = status_value("VmSize: %lu");
	enum success best = NOTHING;

	(void)state;
	if (DT_SLOW || dt_is_verbs())
		skip(); /* sanitizers need address space of their own */
	for (rlim_t space = MIB; space < 700 * MIB; space += space < 64 * MIB ? MIB : 9 * MIB) {
		const enum success now = with_address_space(used + space);

		if (now < best)
			print_error("with %lu MiB more\n", (unsigned long)(space / MIB));
		assert_in_range(now, best, CONNECTS);
		best = now;
		if (space >= OPEN_NEEDS)
			assert_int_not_equal(now, NOTHING);
		if (space >= OPEN_NEEDS + PEER_NEEDS + REST)
			assert_int_equal(now, CONNECTS);
	}
}

/* --- locked memory --- */

static void use_while_locked(struct dt_peer *peer, void *arg)
{
	bool is_locked = mlockall(MCL_FUTURE) == 0;
	rlim_t before, most;

	(void)arg;
	dt_peer_send(peer, &is_locked, sizeof(is_locked));
	if (!is_locked)
		return;
	before = status_value("VmLck: %lu");
	use_everything();
	most = before + LOCKED_MOST;
	assert_in_range(status_value("VmLck: %lu"), before + 1, most);
	assert_true(status_value("VmHWM: %lu") < 64 * MIB);
}

/* IA-OPEN-45 */
static void ia_open__all_memory_locked__little_is_locked(void **state)
{
	struct dt_peer peer;
	bool is_locked;

	(void)state;
	if (DT_SLOW || dt_is_verbs())
		skip();
	dt_peer_start(&peer, use_while_locked, NULL);
	dt_peer_recv(&peer, &is_locked, sizeof(is_locked));
	dt_peer_join(&peer);
	if (!is_locked)
		skip(); /* the right to lock that much is missing */
}

/* As an ordinary user. */
static void use_with_lock_limit(struct dt_peer *peer, void *arg)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {{0}};
	bool is_limited = setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){8 * MIB, 8 * MIB}) == 0 &&
			  syscall(SYS_capset, &head, none) == 0;

	dt_peer_send(peer, &is_limited, sizeof(is_limited));
	if (is_limited)
		use_while_locked(peer, arg);
}

/* IA-OPEN-45 */
static void ia_open__all_memory_locked_up_to_a_limit__works(void **state)
{
	struct dt_peer peer;
	bool is_limited, is_locked;

	(void)state;
	if (DT_SLOW || dt_is_verbs())
		skip();
	dt_peer_start(&peer, use_with_lock_limit, NULL);
	dt_peer_recv(&peer, &is_limited, sizeof(is_limited));
	if (is_limited) {
		dt_peer_recv(&peer, &is_locked, sizeof(is_locked));
		assert_true(is_locked);
	}
	dt_peer_join(&peer);
	if (!is_limited)
		skip(); /* this process may not change its limit */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__each_limit_of_address_space__monotonic),
		cmocka_unit_test(ia_open__all_memory_locked__little_is_locked),
		cmocka_unit_test(ia_open__all_memory_locked_up_to_a_limit__works),
	};

	return cmocka_run_group_tests_name("memory_limits", tests, NULL, NULL);
}
