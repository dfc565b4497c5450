// SPDX-License-Identifier: BSD-2-Clause
/*
 * DTOs and regions that are freed: from then on the memory at the target does not change, and DTOs
 * that need the region fail.
 */
#include <sys/mman.h>

#include "dto_util.h"

/* --- a region freed under traffic --- */

struct traffic {
	struct rig *rig;
	struct dt_buf target;
	pthread_t thread;
	DAT_DTO_COMPLETION_STATUS last;
};

#define TRAFFIC_LEN 60000u

static void *traffic_run(void *arg)
{
	struct traffic *traffic = arg;
	struct dt_ep *a = &traffic->rig->a;
	DAT_LMR_TRIPLET seg = dt_seg(&traffic->rig->x, 0, TRAFFIC_LEN);
	const DAT_RMR_TRIPLET remote = dt_rseg(&traffic->target, 0, TRAFFIC_LEN);
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_EVENT event;

	traffic->last = DAT_DTO_SUCCESS;
	while (traffic->last == DAT_DTO_SUCCESS && dt_now_us() < end) {
		if (dat_ep_post_rdma_write(a->ep, 1, &seg, dt_cookie(1), &remote, 0) != DAT_SUCCESS)
			break;
		event = dt_event_poll(a->request);
		traffic->last = event.event_data.dto_completion_event_data.status;
	}
	return NULL;
}

/* DTO-97 DTO-98 LMR-FREE-06: when dat_lmr_free has returned, no byte changes */
static void lmr_free__writes_in_flight__memory_unchanged(void **state)
{
	struct rig *rig = *state;

	memset(rig->x.p, 0x42, RIG_LEN);
	for (int round = 0; round < 10; round++) {
		struct traffic traffic = {.rig = rig};

		rig_link(rig);
		memset(rig->y.p, RIG_FILL, RIG_LEN);
		dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG,
			      &traffic.target);
		assert_int_equal(pthread_create(&traffic.thread, NULL, traffic_run, &traffic), 0);
		dt_until(dto_is_written, traffic.target.p + TRAFFIC_LEN - 1);
		dt_ok(dat_lmr_free(traffic.target.lmr));
		memset(rig->y.p, 0x99, RIG_LEN);
		assert_int_equal(pthread_join(traffic.thread, NULL), 0);
		assert_int_equal(traffic.last, DAT_DTO_ERR_REMOTE_ACCESS);
		expect_broken(rig);
		dt_check_bytes(rig->y.p, RIG_LEN, 0x99);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

/* --- local memory that is taken away --- */

/* Frees the region of a waiting Send; then its memory is unmapped or overwritten. */
static void check_source_freed(struct rig *rig, size_t len, bool is_unmapped)
{
	DAT_DTO_COMPLETION_STATUS status;
	struct dt_buf own;

	rig_link(rig);
	dt_buf_create(&rig->ia, rig->ia.pz, &own, len, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	memset(own.p, 0x42, len);
	post_send(&rig->a, dt_seg(&own, 0, len), 1, 0);
	dt_ok(dat_lmr_free(own.lmr));
	if (is_unmapped)
		dt_mem_free(own.p, own.mapped);
	else
		memset(own.p, 0x99, len);
	post_recv(&rig->b, dt_seg(&rig->y, 0, len), 2);
	status = dt_event(rig->a.request).event_data.dto_completion_event_data.status;
	if (status == DAT_DTO_SUCCESS) { /* the request no longer needs the region */
		expect_received(&rig->b, 2, len);
		dt_check_bytes(rig->y.p, len, 0x42);
	} else {
		assert_int_equal(status, DAT_DTO_ERR_LOCAL_PROTECTION);
		expect_broken(rig);
		status = dt_event(rig->b.recv).event_data.dto_completion_event_data.status;
		assert_int_not_equal(status, DAT_DTO_SUCCESS);
	}
	if (!is_unmapped)
		dt_mem_free(own.p, own.mapped);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

/* DTO-56 DTO-65 DTO-96 LMR-FREE-06 LMR-FREE-17 CONN-EVT-36 */
static void post_send__region_freed_while_waiting__local_protection(void **state)
{
	static const size_t sizes[] = {20, 3000, 50000};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		check_source_freed(*state, sizes[i], true);
		check_source_freed(*state, sizes[i], false);
	}
}

/* DTO-56 DTO-65 DTO-96 CONN-EVT-36: the region of a Receive is freed before its message arrives */
static void post_recv__region_freed_while_waiting__local_protection(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {20, 3000, 50000};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct dt_buf own;
		DAT_EVENT event;

		rig_link(rig);
		dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &own);
		post_recv(&rig->b, dt_seg(&own, 0, sizes[i]), 1);
		dt_ok(dat_lmr_free(own.lmr));
		post_send(&rig->a, dt_seg(&rig->x, 0, sizes[i]), 2, 0);
		dt_expect_dto(rig->b.recv, rig->b.ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION, DT_ANY_LEN);
		event = dt_event(rig->a.request);
		assert_int_not_equal(event.event_data.dto_completion_event_data.status,
				     DAT_DTO_SUCCESS);
		expect_broken(rig);
		dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

/* EP-RECV-27 DTO-56 DTO-96: the zone set later does not match the Receive posted before */
static void post_recv__zone_set_later_differs__local_protection(void **state)
{
	struct rig *rig = *state;
	DAT_EP_PARAM param;

	dt_ok(dat_pz_create(rig->ia.ia, &param.pz_handle));
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_create(&rig->ia, DAT_HANDLE_NULL, &rig->attr_b, &rig->b);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	const DAT_RETURN ret = dat_ep_modify(rig->b.ep, DAT_EP_FIELD_PZ_HANDLE, &param);

	if (ret != DAT_SUCCESS) { /* the check may be made when the zone is set */
		dt_fails(ret, DAT_PROTECTION_VIOLATION);
		return;
	}
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, 0);
	dt_expect_dto(rig->b.recv, rig->b.ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION, DT_ANY_LEN);
	expect_broken(rig);
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
}

/* DTO-96: the local region of a Read is freed before the Read starts (a fence delays it) */
static void post_rdma_read__region_freed_while_waiting__no_access(void **state)
{
	struct rig *rig = *state;
	DAT_DTO_COMPLETION_STATUS status;
	struct dt_buf own;

	for (int round = 0; round < 10; round++) {
		rig_link(rig);
		dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p + 40000, 20000,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &own);
		for (int i = 0; i < 10; i++)
			post_read(&rig->a, dt_seg(&rig->x, 0, 30000), dt_rseg(&rig->y, 0, 30000), 1,
				  DAT_COMPLETION_SUPPRESS_FLAG);
		post_read(&rig->a, dt_seg(&own, 0, 20000), dt_rseg(&rig->y, 0, 20000), 2,
			  DAT_COMPLETION_BARRIER_FENCE_FLAG);
		dt_ok(dat_lmr_free(own.lmr));
		memset(own.p, 0x77, 20000);
		status = dt_event(rig->a.request).event_data.dto_completion_event_data.status;
		dt_check_bytes(own.p, 20000, 0x77);
		if (status != DAT_DTO_SUCCESS) {
			assert_int_equal(status, DAT_DTO_ERR_LOCAL_PROTECTION);
			expect_broken(rig);
		}
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(lmr_free__writes_in_flight__memory_unchanged),
		rig_test_bare(post_send__region_freed_while_waiting__local_protection),
		rig_test_bare(post_recv__region_freed_while_waiting__local_protection),
		rig_test_bare(post_recv__zone_set_later_differs__local_protection),
		rig_test_bare(post_rdma_read__region_freed_while_waiting__no_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
