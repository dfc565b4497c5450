// SPDX-License-Identifier: BSD-2-Clause
/*
 * Advice on numbers above what common devices have: a greater one is reported, once and with the right
 * object, and the limit itself is not (CHECK-RULE-24).
 */
#include "rules_util.h"

#define REQUESTS 16384
#define SEGMENTS 16
#define READS 16
#define EVENTS 32767
#define SRQ_BUFFERS 16384
#define PRIVATE_DATA 64

/* ---- endpoints ---- */

/* An endpoint with the limit, and one with more. Each use of the macro is a place of its own. */
#define CREATE_WITH(rig, member, limit)                                                            \
	do {                                                                                       \
		DAT_EP_ATTR attr_;                                                                 \
		struct dt_ep ep_;                                                                  \
                                                                                                   \
		dt_ep_attr(&(rig)->ia, &attr_);                                                    \
		attr_.member = (limit);                                                            \
		dt_ep_create(&(rig)->ia, (rig)->ia.pz, &attr_, &ep_);                              \
		dt_ep_free(&ep_);                                                                  \
		expect_silence();                                                                  \
		attr_.member = (limit) + 1;                                                        \
		dt_ep_create(&(rig)->ia, (rig)->ia.pz, &attr_, &ep_);                              \
		assert_ptr_equal(reports.handles[0], ep_.ep);                                      \
		expect_report("large-count", #member " ");                                         \
		dt_ep_free(&ep_);                                                                  \
	} while (0)

/* CHECK-RULE-24 */
static void ep_create(void **state)
{
	struct rig *rig = *state;

	CREATE_WITH(rig, max_recv_dtos, REQUESTS);
	CREATE_WITH(rig, max_request_dtos, REQUESTS);
	CREATE_WITH(rig, max_recv_iov, SEGMENTS);
	CREATE_WITH(rig, max_request_iov, SEGMENTS);
	CREATE_WITH(rig, max_rdma_read_iov, SEGMENTS);
	CREATE_WITH(rig, max_rdma_write_iov, SEGMENTS);
	CREATE_WITH(rig, max_rdma_read_in, READS);
	CREATE_WITH(rig, max_rdma_read_out, READS);
}

/* CHECK-RULE-24: only the attributes that the mask names. */
static void ep_modify(void **state)
{
	const DAT_EP_PARAM_MASK mask = DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN;
	struct rig *rig = *state;
	DAT_EP_PARAM param;
	struct dt_ep ep;

	memset(&param, 0, sizeof(param));
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &ep);
	dt_ok(dat_ep_modify(ep.ep, 0, NULL));
	param.ep_attr.max_rdma_read_in = READS;
	param.ep_attr.max_rdma_read_out = READS + 1;
	dt_ok(dat_ep_modify(ep.ep, mask, &param));
	expect_silence();
	param.ep_attr.max_rdma_read_in = READS + 1;
	dt_ok(dat_ep_modify(ep.ep, mask, &param));
	assert_ptr_equal(reports.handles[0], ep.ep);
	expect_report("large-count", "max_rdma_read_in 17: common devices have at most 16");
	dt_ep_free(&ep);
}

/* CHECK-RULE-24: the provider takes the first one, and refuses the second. */
static void segments_of_a_post(void **state)
{
	DAT_LMR_TRIPLET segments[SEGMENTS + 1];
	struct rig *rig = *state;
	DAT_EP_ATTR attr;
	struct dt_ep ep;

	for (size_t i = 0; i <= SEGMENTS; i++)
		segments[i] = dt_seg(&rig->y, i, 1);
	dt_ep_attr(&rig->ia, &attr);
	attr.max_recv_iov = SEGMENTS;
	dt_ep_create(&rig->ia, rig->ia.pz, &attr, &ep);
	dt_ok(dat_ep_post_recv(ep.ep, SEGMENTS, segments, dt_cookie(1), FLAG));
	expect_silence();
	dt_fails(dat_ep_post_recv(ep.ep, SEGMENTS + 1, segments, dt_cookie(2), FLAG),
		 DAT_INVALID_PARAMETER);
	assert_ptr_equal(reports.handles[0], ep.ep);
	expect_report("large-count", "num_segments 17");
}

/* ---- queues ---- */

/* CHECK-RULE-24: devices have limits for completions only. */
static void evd_create(void **state)
{
	struct rig *rig = *state;
	DAT_EVD_HANDLE evd;

	dt_ok(dat_evd_free(dt_evd_create(&rig->ia, EVENTS, DAT_EVD_DTO_FLAG)));
	dt_ok(dat_evd_free(dt_evd_create(&rig->ia, EVENTS + 1, DAT_EVD_CONNECTION_FLAG)));
	expect_silence();
	evd = dt_evd_create(&rig->ia, EVENTS + 1, DAT_EVD_DTO_FLAG);
	assert_ptr_equal(reports.handles[0], evd);
	expect_report("large-count", "evd_min_qlen 32768");
	dt_ok(dat_evd_free(evd));
}

/* CHECK-RULE-24 */
static void evd_resize(void **state)
{
	struct rig *rig = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&rig->ia, 8, DAT_EVD_DTO_FLAG);

	dt_ok(dat_evd_resize(evd, EVENTS));
	expect_silence();
	dt_ok(dat_evd_resize(evd, EVENTS + 1));
	assert_ptr_equal(reports.handles[0], evd);
	expect_report("large-count", "evd_min_qlen 32768");
	dt_ok(dat_evd_free(evd));
}

/* CHECK-RULE-24 */
static void srq_create(void **state)
{
	struct rig *rig = *state;
	DAT_SRQ_HANDLE srq;

	dt_ok(dat_srq_free(srq_make(&rig->ia, SRQ_BUFFERS, SEGMENTS)));
	expect_silence();
	srq = srq_make(&rig->ia, SRQ_BUFFERS + 1, 1);
	assert_ptr_equal(reports.handles[0], srq);
	expect_report("large-count", "max_recv_dtos 16385");
	dt_ok(dat_srq_free(srq));
	srq = srq_make(&rig->ia, 4, SEGMENTS + 1);
	assert_ptr_equal(reports.handles[0], srq);
	expect_report("large-count", "max_recv_iov 17");
	dt_ok(dat_srq_free(srq));
}

/* CHECK-RULE-24 */
static void srq_resize(void **state)
{
	struct rig *rig = *state;
	DAT_SRQ_HANDLE srq = srq_make(&rig->ia, 4, 1);

	dt_ok(dat_srq_resize(srq, SRQ_BUFFERS));
	expect_silence();
	dt_ok(dat_srq_resize(srq, SRQ_BUFFERS + 1));
	assert_ptr_equal(reports.handles[0], srq);
	expect_report("large-count", "srq_max_recv_dto 16385");
	dt_ok(dat_srq_free(srq));
}

/* ---- private data ---- */

static unsigned char data[PRIVATE_DATA + 1];

static DAT_RETURN connect_with(struct rig *rig, DAT_EP_HANDLE ep, DAT_CONN_QUAL qual,
			       DAT_COUNT size)
{
	return dat_ep_connect(ep, rig->ia.attr.ia_address_ptr, qual, DT_WAIT_US, size, data,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* CHECK-RULE-24: whether the provider takes it or not. */
static void private_data(void **state)
{
	struct rig *rig = *state;
	struct dt_listener listener;
	DAT_CR_HANDLE request;
	struct dt_ep a, b;

	dt_listen(&rig->ia, &listener);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &a);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &b);
	dt_fails(connect_with(rig, a.ep, listener.qual, PRIVATE_DATA + 1), DAT_INVALID_PARAMETER);
	assert_ptr_equal(reports.handles[0], a.ep);
	expect_report("large-count", "private_data_size 65");
	dt_ok(connect_with(rig, a.ep, listener.qual, PRIVATE_DATA));
	request = dt_request(&listener);
	expect_silence();
	dt_fails(dat_cr_accept(request, b.ep, PRIVATE_DATA + 1, data), DAT_INVALID_PARAMETER);
	assert_ptr_equal(reports.handles[0], request);
	expect_report("large-count", "private_data_size 65");
	dt_ok(dat_cr_accept(request, b.ep, PRIVATE_DATA, data));
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_silence();
	dt_unlisten(&listener);
}

/* CHECK-RULE-24 */
static void private_data_of_duplicate(void **state)
{
	struct rig *rig = *state;
	struct dt_ep ep;

	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &ep);
	dt_fails(dat_ep_dup_connect(ep.ep, rig->a.ep, DT_WAIT_US, PRIVATE_DATA + 1, data,
				    DAT_QOS_BEST_EFFORT),
		 DAT_INVALID_PARAMETER);
	assert_ptr_equal(reports.handles[0], ep.ep);
	expect_report("large-count", "private_data_size 65");
	dt_ok(dat_ep_dup_connect(ep.ep, rig->a.ep, DT_WAIT_US, PRIVATE_DATA, data,
				 DAT_QOS_BEST_EFFORT));
	expect_silence();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		check_test_bare(ep_create),
		check_test_bare(ep_modify),
		check_test_bare(segments_of_a_post),
		check_test_bare(evd_create),
		check_test_bare(evd_resize),
		check_test_bare(srq_create),
		check_test_bare(srq_resize),
		check_test_bare(private_data),
		check_test(private_data_of_duplicate),
	};

	check_rules_on();
	return cmocka_run_group_tests_name("check limits", tests, NULL, NULL);
}
