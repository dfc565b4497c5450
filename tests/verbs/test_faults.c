// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each call to rdma-core that can fail is made to fail in turn, from opening the adapter to the
 * first transfers. The failure is reported, nothing hangs, and nothing is left behind.
 */
#include "rig.h"

#include <stdio.h>
#include <sys/mman.h>

#include "verbs/device/cq.h"

static struct rig rig;

/* IA-OPEN-*: an adapter that cannot be opened leaves nothing. */
static void ia_open__each_call_fails__nothing_left(void **state)
{
	unsigned call = 0;
	DAT_RETURN ret;

	(void)state;
	for (;;) {
		rig.qual = 0;
		fake_fail_at(++call);
		ret = rig_open(&rig);
		if (!fake_failed())
			break;
		fake_fail_at(0);
		if (ret == DAT_SUCCESS) { /* queries, and the probe of the room for inline data */
			rig_close(&rig);
			continue;
		}
		assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
		assert_int_equal(fake_live(), 0);
	}
	fake_fail_at(0);
	assert_int_equal(ret, DAT_SUCCESS);
	assert_in_range(call, 8, 40);
	rig_close(&rig);
}

static const char text[64] = "sixty-four bytes of private data, which take two requests";

/*
 * True: both sides have reported the connection. Otherwise each has reported a failure, or the
 * connection was not started.
 */
static bool try_connect(void)
{
	DAT_RETURN ret = rig_connect(&rig, text, sizeof(text));
	DAT_EP_STATE state;
	DAT_EVENT a, b;

	assert_int_equal(core_ep_get_status(rig.a.ep, &state, NULL, NULL), DAT_SUCCESS);
	if (state == DAT_EP_STATE_UNCONNECTED)
		return false; /* the connect call was refused and raises no event */
	a = rig_event(rig.a.conn);
	assert_int_not_equal(a.event_number, 0);
	if (ret != DAT_SUCCESS)
		return false;
	b = rig_event(rig.b.conn);
	assert_int_not_equal(b.event_number, 0);
	return a.event_number == DAT_CONNECTION_EVENT_ESTABLISHED &&
	       b.event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
}

/* Sends 64 bytes from a to b. True if both completions report success. */
static bool try_transfer(void)
{
	DAT_DTO_COMPLETION_STATUS sent, got;

	if (rig_recv(&rig, &rig.b, 64, 1) != DAT_SUCCESS ||
	    rig_send(&rig, &rig.a, 64, 2, DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS)
		return false;
	sent = rig_event(rig.a.dto).event_data.dto_completion_event_data.status;
	got = rig_event(rig.b.dto).event_data.dto_completion_event_data.status;
	return sent == DAT_DTO_SUCCESS && got == DAT_DTO_SUCCESS;
}

/* CR-ACCEPT-19 EP-CONNECT-22 EP-CONNECT-42 DTO-55: and the next try works */
static void connection__each_call_fails__reported_and_nothing_left(void **state)
{
	unsigned call = 0;
	bool is_good, has_failed;

	(void)state;
	do {
		rig.qual = 0;
		assert_int_equal(rig_open(&rig), DAT_SUCCESS);
		fake_fail_at(++call);
		is_good = rig_make(&rig) == DAT_SUCCESS && try_connect() && try_transfer();
		has_failed = fake_failed() != NULL;
		fake_fail_at(0);
		rig_close(&rig);
	} while (has_failed);
	assert_true(is_good);
	assert_in_range(call, 20, 200);
}

/*
 * GEN-20 EP-CONNECT-42: a call that cannot make its queue pair gives back what it has taken, a slot
 * and room for completions. More failures than there are slots.
 */
static void ep_connect__no_queue_pair_many_times__nothing_used_up(void **state)
{
	int live;

	(void)state;
	rig.qual = 0;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
	live = fake_live();
	for (unsigned i = 0; i <= VRB_KEY_INDEX_MASK + 1; i++) {
		fake_fail_next("ibv_create_qp");
		assert_int_equal(DAT_GET_TYPE(rig_ask(&rig, RIG_WAIT_US, NULL, 0)),
				 DAT_INSUFFICIENT_RESOURCES);
	}
	fake_fail_at(0);
	assert_int_equal(fake_live(), live);
	assert_true(try_connect() && try_transfer());
	rig_close(&rig);
}

/* GEN-20: a refused post ends the connection, and a new one works. */
static void post__refused_by_the_device__broken_once(void **state)
{
	(void)state;
	rig.qual = 0;
	rig_begin(&rig);
	assert_int_equal(rig_recv(&rig, &rig.a, 8, 7), DAT_SUCCESS);
	fake_fail_next("ibv_post_send");
	assert_int_equal(rig_send(&rig, &rig.a, 64, 2, DAT_COMPLETION_DEFAULT_FLAG), DAT_SUCCESS);
	assert_string_equal(fake_failed(), "ibv_post_send");
	fake_fail_at(0);
	rig_expect_dto(&rig.a, 2, DAT_DTO_ERR_FLUSHED);
	rig_expect_dto(&rig.a, 7, DAT_DTO_ERR_FLUSHED);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_no_event(rig.a.conn);
	rig_again(&rig);
	assert_true(try_transfer());
	rig_close(&rig);
}

/* The memory exists, but the device refuses it. */
static void lmr_create__device_cannot_pin__model_not_supported(void **state)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	(void)state;
	rig.qual = 0;
	rig_begin(&rig);
	region.for_va = rig.memory;
	fake_fail_next("ibv_reg_mr");
	fake_fail_with(EFAULT);
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, rig.pz,
					 DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &context, NULL, NULL,
					 NULL),
			 DAT_CLASS_ERROR | DAT_MODEL_NOT_SUPPORTED);
	assert_string_equal(fake_failed(), "ibv_reg_mr");
	fake_fail_at(0);
	rig_close(&rig);
}

/* LMR-CREATE-23: a check that the core leaves to the device */
static void lmr_create__memory_not_writable__invalid_parameter(void **state)
{
	static const DAT_MEM_PRIV_FLAGS writing[] = {DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
						     DAT_MEM_PRIV_REMOTE_WRITE_FLAG};
	DAT_REGION_DESCRIPTION region = {
		.for_va = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	(void)state;
	assert_ptr_not_equal(region.for_va, MAP_FAILED);
	rig.qual = 0;
	rig_begin(&rig);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, rig.pz,
						 writing[i], &lmr, &context, NULL, NULL, NULL),
				 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, rig.pz,
					 DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	rig_close(&rig);
	munmap(region.for_va, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__each_call_fails__nothing_left),
		cmocka_unit_test(connection__each_call_fails__reported_and_nothing_left),
		cmocka_unit_test(ep_connect__no_queue_pair_many_times__nothing_used_up),
		cmocka_unit_test(post__refused_by_the_device__broken_once),
		cmocka_unit_test(lmr_create__device_cannot_pin__model_not_supported),
		cmocka_unit_test(lmr_create__memory_not_writable__invalid_parameter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
