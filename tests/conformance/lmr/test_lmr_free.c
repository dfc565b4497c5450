// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_lmr_free within one process: refusals, what ends with the region and what keeps working.
 * test_lmr_revoke.c tests it while other processes write.
 */
#include "conf.h"

#include <stdio.h>
#include <sys/mman.h>

#define PAGE 4096u
#define CYCLES 1000

static void create(struct dt_pair *pair, struct dt_buf *buf, unsigned priv)
{
	dt_buf_create(&pair->ia, pair->ia.pz, buf, PAGE, (DAT_MEM_PRIV_FLAGS)priv);
}

/* Frees the region but keeps its memory, keys and dead handle. */
static void revoke(const struct dt_buf *buf)
{
	dt_ok(dat_lmr_free(buf->lmr));
}

static void forget(struct dt_buf *buf)
{
	buf->lmr = DAT_HANDLE_NULL;
	dt_buf_free(buf);
}

/* LMR-FREE-01 LMR-FREE-05 LMR-FREE-16 GEN-16 */
static void lmr_free__used_afterwards__invalid_handle(void **state)
{
	struct dt_pair *pair = *state;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_PARAM param;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
	DAT_LMR_HANDLE copy;
	struct dt_buf buf;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	revoke(&buf);
	region.for_lmr_handle = buf.lmr;
	dt_fails_with(dat_lmr_query(buf.lmr, DAT_LMR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_create(pair->ia.ia, DAT_MEM_TYPE_LMR, region, PAGE, pair->ia.pz,
				     CONF_LOCAL, &copy, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_get_handle_type(buf.lmr, &type), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dt_fails_with(dat_get_consumer_context(buf.lmr, &context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_lmr_free(buf.lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_free(buf.lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	forget(&buf);
}

/* LMR-FREE-15 LMR-QUERY-13 */
static void lmr_free__no_region__invalid_handle(void **state)
{
	struct dt_pair *pair = *state;
	DAT_LMR_PARAM param;
	struct conf_bad bad;
	struct dt_buf buf;

	create(pair, &buf, CONF_LOCAL);
	conf_bad_make(&pair->ia, &bad);
	conf_refuses(&bad, h, DAT_INVALID_HANDLE_LMR, dat_lmr_free(h));
	conf_refuses(&bad, h, DAT_INVALID_HANDLE_LMR, dat_lmr_query(h, DAT_LMR_FIELD_ALL, &param));
	dt_fails_with(dat_lmr_free(pair->ia.pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_free(pair->a.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_query(pair->a.ep, DAT_LMR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_LMR);
	dt_buf_free(&buf);
}

/* --- windows --- */

/* Binds the window to the region, or with length 0 to nothing; waits for the completion. */
static DAT_RMR_CONTEXT bind_window(struct dt_pair *pair, DAT_RMR_HANDLE rmr,
				   const struct dt_buf *buf, size_t len)
{
	const DAT_LMR_TRIPLET seg = dt_seg(buf, 0, len);
	const DAT_RMR_COOKIE cookie = {.as_64 = 77};
	DAT_RMR_CONTEXT rkey = 0;
	DAT_EVENT event;

	dt_ok(dat_rmr_bind(rmr, &seg, DAT_MEM_PRIV_ALL_FLAG, pair->b.ep, cookie,
			   DAT_COMPLETION_DEFAULT_FLAG, &rkey));
	event = dt_event(pair->b.request);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_int_equal(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
	return rkey;
}

/* LMR-FREE-02 LMR-FREE-03 LMR-FREE-04 */
static void lmr_free__window_bound__invalid_state_until_it_is_not(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf, other;

	create(pair, &other, CONF_LOCAL);
	for (int way = 0; way < 3; way++) {
		DAT_RMR_HANDLE rmr;
		DAT_RMR_TRIPLET window;

		create(pair, &buf, CONF_LOCAL);
		dt_ok(dat_rmr_create(pair->ia.pz, &rmr));
		window = dt_rseg(&buf, 64, 64);
		window.rmr_context = bind_window(pair, rmr, &buf, 1024);
		dt_fails_with(dat_lmr_free(buf.lmr), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_LMR_IN_USE);
		dt_fails_with(dat_lmr_free(buf.lmr), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_LMR_IN_USE);
		dt_fill(buf.p, 64, (uint32_t)way);
		conf_write(pair, dt_seg(&buf, 0, 64), window);
		dt_check_pattern(buf.p + 64, 64, (uint32_t)way);
		if (way == 0)
			bind_window(pair, rmr, &other, 64);
		else if (way == 1)
			bind_window(pair, rmr, &buf, 0);
		else
			dt_ok(dat_rmr_free(rmr));
		dt_buf_free(&buf);
		if (way != 2)
			dt_ok(dat_rmr_free(rmr));
	}
	dt_buf_free(&other);
}

/* LMR-CREATE-43 */
static void rmr_bind__over_a_region_with_remote_key__key_stays_good(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf;
	DAT_RMR_HANDLE rmr;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	dt_ok(dat_rmr_create(pair->ia.pz, &rmr));
	bind_window(pair, rmr, &buf, PAGE);
	conf_write(pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 64, 64));
	bind_window(pair, rmr, &buf, 0);
	conf_write(pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 64, 64));
	dt_ok(dat_rmr_free(rmr));
	conf_write(pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 64, 64));
	dt_buf_free(&buf);
}

/* --- after the return --- */

/* LMR-FREE-06 DTO-95 */
static void lmr_free__local_key_used_afterwards__privileges_violation(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf, other;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	create(pair, &other, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(other.p, PAGE, 1);
	dt_fill(buf.p, PAGE, 2);
	revoke(&buf);
	dt_fails_with(conf_post_send(pair, dt_seg(&buf, 0, 64), 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_READ);
	dt_fails_with(conf_post_recv(pair, dt_seg(&buf, 0, 64), 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_WRITE);
	dt_fails_with(conf_post_write(pair, dt_seg(&buf, 0, 64), dt_rseg(&other, 0, 64), 1),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	dt_fails_with(conf_post_read(pair, dt_seg(&buf, 0, 64), dt_rseg(&other, 0, 64), 1),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	dt_stays_empty(pair->a.request);
	dt_check_pattern(other.p, PAGE, 1);
	dt_check_pattern(buf.p, PAGE, 2);
	conf_write(pair, dt_seg(&other, 0, 64), dt_rseg(&other, 64, 64));
	forget(&buf);
	dt_buf_free(&other);
}

/* LMR-FREE-07 LMR-FREE-08 LMR-FREE-11 DTO-97 */
static void lmr_free__remote_key_used_afterwards__refused_and_broken(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf local;

	create(pair, &local, CONF_LOCAL);
	for (int reading = 0; reading < 2; reading++) {
		struct dt_buf target;

		create(pair, &target, DAT_MEM_PRIV_ALL_FLAG);
		dt_fill(local.p, PAGE, 1);
		/* The key was used before, so that caches have it. */
		conf_write(pair, dt_seg(&local, 0, PAGE), dt_rseg(&target, 0, PAGE));
		revoke(&target);
		dt_check_pattern(target.p, PAGE, 1);
		dt_fill(target.p, PAGE, 2);
		if (reading)
			dt_ok(conf_post_read(pair, dt_seg(&local, 0, 64), dt_rseg(&target, 0, 64),
					     5));
		else
			dt_ok(conf_post_write(pair, dt_seg(&local, 0, 64), dt_rseg(&target, 0, 64),
					      5));
		conf_expect_refused(pair, 5);
		dt_check_pattern(target.p, PAGE, 2);
		forget(&target);
		conf_relink(pair);
	}
	dt_buf_free(&local);
}

/* --- operations under way --- */

/* LMR-FREE-06 LMR-FREE-17 DTO-96 DTO-56 */
static void lmr_free__posted_receive__ends_with_local_protection(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf source, sink;
	DAT_EVENT event;

	create(pair, &source, CONF_LOCAL);
	create(pair, &sink, CONF_LOCAL);
	dt_fill(source.p, PAGE, 1);
	dt_fill(sink.p, PAGE, 2);
	dt_ok(conf_post_recv(pair, dt_seg(&sink, 0, PAGE), 6));
	revoke(&sink);
	dt_ok(conf_post_send(pair, dt_seg(&source, 0, PAGE), 7));
	dt_expect_dto(pair->b.recv, pair->b.ep, 6, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	event = dt_event(pair->a.request);
	assert_int_not_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	conf_expect_broken(pair);
	dt_check_pattern(sink.p, PAGE, 2);
	forget(&sink);
	dt_buf_free(&source);
}

/* A Send without a Receive, whose region is freed before the Receive is posted. */
static void send_then_revoke(struct dt_pair *pair, size_t len)
{
	struct dt_buf source, sink;
	DAT_DTO_COMPLETION_STATUS status;

	dt_buf_create(&pair->ia, pair->ia.pz, &source, len, CONF_LOCAL);
	dt_buf_create(&pair->ia, pair->ia.pz, &sink, len, DAT_MEM_PRIV_ALL_FLAG);
	/* the copy path for this length is chosen now */
	conf_write(pair, dt_seg(&source, 0, len), dt_rseg(&sink, 0, len));
	dt_fill(source.p, len, 1);
	dt_ok(conf_post_send(pair, dt_seg(&source, 0, len), 8));
	revoke(&source);
	dt_fill(source.p, len, 2);
	dt_ok(conf_post_recv(pair, dt_seg(&sink, 0, len), 9));
	status = dt_event(pair->a.request).event_data.dto_completion_event_data.status;
	if (status == DAT_DTO_SUCCESS) {
		dt_expect_dto(pair->b.recv, pair->b.ep, 9, DAT_DTO_SUCCESS, len);
		dt_check_pattern(sink.p, len, 1); /* taken before the return, not after it */
	} else {
		assert_int_equal(status, DAT_DTO_ERR_LOCAL_PROTECTION);
		conf_expect_broken(pair);
		status = dt_event(pair->b.recv).event_data.dto_completion_event_data.status;
		assert_int_not_equal(status, DAT_DTO_SUCCESS);
		conf_relink(pair);
	}
	forget(&source);
	dt_buf_free(&sink);
}

/* LMR-FREE-06 LMR-FREE-17 DTO-96 */
static void lmr_free__posted_send__moves_nothing_afterwards(void **state)
{
	send_then_revoke(*state, 16);
	send_then_revoke(*state, PAGE);
	send_then_revoke(*state, 50000); /* all of it may be under way */
	send_then_revoke(*state, 1u << 20);
}

/* --- what keeps working --- */

/* LMR-FREE-14 */
static void lmr_free__other_region_over_the_same_memory__works(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf first, second;

	create(pair, &first, DAT_MEM_PRIV_ALL_FLAG);
	dt_lmr_create(&pair->ia, pair->ia.pz, first.p, PAGE, DAT_MEM_PRIV_ALL_FLAG, &second);
	dt_fill(first.p, PAGE / 2, 14);
	revoke(&first);
	conf_write(pair, dt_seg(&second, 0, PAGE / 2), dt_rseg(&second, PAGE / 2, PAGE / 2));
	dt_check_pattern(first.p + PAGE / 2, PAGE / 2, 14);
	dt_buf_free(&second);
	forget(&first);
}

static long locked_kib(const char *field)
{
	const size_t len = strlen(field);
	char line[256];
	long kib = -1;
	FILE *file = fopen("/proc/self/status", "re");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, field, len) == 0)
			assert_int_equal(sscanf(line + len, "%ld", &kib), 1);
	fclose(file);
	assert_true(kib >= 0);
	return kib;
}

/* LMR-FREE-12 LMR-FREE-13 */
static void lmr_free__memory_locked_by_the_consumer__stays_locked(void **state)
{
	struct dt_pair *pair = *state;
	const long locked = locked_kib("VmLck:"), pinned = locked_kib("VmPin:");
	struct dt_buf buf;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_free(&buf);
	assert_int_equal(locked_kib("VmLck:"), locked);
	assert_int_equal(locked_kib("VmPin:"), pinned);
	unsigned char *p = dt_mem_alloc(PAGE);

	if (mlock(p, PAGE) == 0) {
		const long with_ours = locked_kib("VmLck:");

		dt_lmr_create(&pair->ia, pair->ia.pz, p, PAGE, DAT_MEM_PRIV_ALL_FLAG, &buf);
		dt_buf_free(&buf);
		assert_int_equal(locked_kib("VmLck:"), with_ours);
		assert_int_equal(locked_kib("VmPin:"), pinned);
	}
	dt_mem_free(p, PAGE);
}

/* LMR-FREE-19 */
static void lmr_free__create_again__keys_not_reissued_at_once(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = dt_mem_alloc(PAGE);
	struct dt_buf buf, first = {.lkey = 0}, last = {.lkey = 0};

	/* more often than there are free slots, so that the slots are used again */
	for (int i = 0; i < 3 * CYCLES; i++) {
		dt_lmr_create(&pair->ia, pair->ia.pz, p, PAGE, DAT_MEM_PRIV_ALL_FLAG, &buf);
		if (!i) {
			first = buf;
		} else {
			assert_int_not_equal(buf.lkey, first.lkey);
			assert_int_not_equal(buf.lkey, last.lkey);
			assert_int_not_equal(buf.rkey, last.rkey);
			assert_ptr_not_equal(buf.lmr, last.lmr);
		}
		last = buf;
		dt_buf_free(&buf);
	}
	dt_mem_free(p, PAGE);
}

struct one_region {
	DAT_LMR_HANDLE lmr;
	atomic_int freed;
	atomic_int unexpected;
};

static void *query_and_free(void *arg)
{
	struct one_region *region = arg;
	DAT_LMR_PARAM param;
	DAT_RETURN ret = dat_lmr_query(region->lmr, DAT_LMR_FIELD_ALL, &param);

	if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&region->unexpected, 1);
	ret = dat_lmr_free(region->lmr);
	if (ret == DAT_SUCCESS)
		atomic_fetch_add(&region->freed, 1);
	else if (DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&region->unexpected, 1);
	return NULL;
}

/* LMR-FREE-20 LMR-QUERY-15 GEN-26 */
static void lmr_free__same_region_in_parallel__freed_once(void **state)
{
	struct dt_pair *pair = *state;

	for (int round = 0; round < 50; round++) {
		struct one_region region = {.freed = 0};
		struct dt_buf buf;

		create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
		region.lmr = buf.lmr;
		conf_parallel(query_and_free, &region);
		assert_int_equal(region.freed, 1);
		assert_int_equal(region.unexpected, 0);
		forget(&buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_pair_test(lmr_free__used_afterwards__invalid_handle),
		dt_pair_test(lmr_free__no_region__invalid_handle),
		dt_pair_test(lmr_free__window_bound__invalid_state_until_it_is_not),
		dt_pair_test(rmr_bind__over_a_region_with_remote_key__key_stays_good),
		dt_pair_test(lmr_free__local_key_used_afterwards__privileges_violation),
		dt_pair_test(lmr_free__remote_key_used_afterwards__refused_and_broken),
		dt_pair_test(lmr_free__posted_receive__ends_with_local_protection),
		dt_pair_test(lmr_free__posted_send__moves_nothing_afterwards),
		dt_pair_test(lmr_free__other_region_over_the_same_memory__works),
		dt_pair_test(lmr_free__memory_locked_by_the_consumer__stays_locked),
		dt_pair_test(lmr_free__create_again__keys_not_reissued_at_once),
		dt_pair_test(lmr_free__same_region_in_parallel__freed_once),
	};

	return cmocka_run_group_tests_name("lmr free", tests, NULL, NULL);
}
