// SPDX-License-Identifier: BSD-2-Clause
/*
 * A limit on the size of files (RLIMIT_FSIZE) that becomes lower while an adapter is open. It
 * applies to memory files, too. The kernel sends SIGXFSZ to a thread that exceeds it; the library
 * must not let that happen.
 */
#include <dat/opendat.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "conn_util.h"
#include "soft/shm/bytes/segment.h"

#define TINY 4096			   /* no connection has room in such a file */
#define SMALL (sizeof(struct shm_segment)) /* one has, and nothing else */
#define LENGTH 3000017u			   /* bytes: more than that */

/* EP-CONNECT-42 CR-ACCEPT-28: whichever side makes the shared memory. */
static void ep_connect__tiny_files_only__insufficient_resources(void **state)
{
	struct conn_fixture *f = *state;
	const struct conn_args args = conn_args_of(f);
	const struct rlimit old = conn_files_limit(TINY);
	DAT_RETURN ret = conn_try(f->a.ep, &args);

	if (ret == DAT_SUCCESS)
		ret = dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL);
	conn_files_free(&old);
	dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

/* Large transfers need no file of their own. */
static void rdma_write__small_files_only__arrives(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_buf from, to;
	DAT_LMR_TRIPLET local;
	DAT_RMR_TRIPLET remote;
	struct rlimit old;

	dt_buf_create(&f->ia, f->ia.pz, &from, LENGTH, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&f->ia, f->ia.pz, &to, LENGTH, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(from.p, LENGTH, 7);
	local = dt_seg(&from, 0, LENGTH);
	remote = dt_rseg(&to, 0, LENGTH);
	old = conn_files_limit(SMALL);
	conn_link(f, &f->a, &f->b);
	dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &local, dt_cookie(1), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(f->a.request, f->a.ep, 1, DAT_DTO_SUCCESS, LENGTH);
	conn_files_free(&old);
	dt_check_pattern(to.p, LENGTH, 7);
	dt_buf_free(&from);
	dt_buf_free(&to);
}

/* The signal neither ends the program nor stays pending. */
static void mem_alloc__more_than_the_limit__insufficient_resources(void **state)
{
	const struct rlimit old = conn_files_limit(SMALL);
	DAT_PVOID memory = NULL;
	DAT_RETURN ret, ret_small;
	sigset_t pending;

	(void)state;
	ret = dat_opendat_mem_alloc(SMALL + 1, DAT_OPENDAT_MEM_DEFAULT, &memory);
	assert_null(memory);
	assert_int_equal(sigpending(&pending), 0);
	ret_small = dat_opendat_mem_alloc(SMALL, DAT_OPENDAT_MEM_DEFAULT, &memory);
	conn_files_free(&old);
	dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	assert_false(sigismember(&pending, SIGXFSZ));
	dt_ok(ret_small);
	dt_ok(dat_opendat_mem_free(memory));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(ep_connect__tiny_files_only__insufficient_resources),
		conn_test(rdma_write__small_files_only__arrives),
		cmocka_unit_test(mem_alloc__more_than_the_limit__insufficient_resources),
	};

	return cmocka_run_group_tests_name("file_limit", tests, NULL, NULL);
}
