// SPDX-License-Identifier: BSD-2-Clause
/* Arguments, attributes and results of calls of DAT 2.0 that transfer no bytes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <dat2/opendat.h>

#include "dto_util.h"
#include "srq_util.h"

#undef dat_lmr_create
#undef dat_rmr_bind

#define POISON 0x5a
#define REGION 4096

/* No header declares it. */
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

/* --- the adapter --- */

/* D2-IA-01 D2-IA-03 D2-IA-04 D2-IA-20 */
static void ia_query__any_bit__fills_everything_and_no_more(void **state)
{
	struct dt_ia *ia = *state;
	struct {
		DAT_IA_ATTR attr;
		unsigned char guard[64];
	} of_ia;
	struct {
		DAT_PROVIDER_ATTR attr;
		unsigned char guard[64];
	} of_provider;

	memset(&of_ia, POISON, sizeof(of_ia));
	memset((void *)&of_provider, POISON, sizeof(of_provider));
	dt_fails_with(dat_ia_query(ia->ia, NULL, DAT_IA_FIELD_ALL + 1, &of_ia.attr, 0, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(
		dat_ia_query(ia->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1, &of_provider.attr),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	dt_ok(dat_ia_query(ia->ia, NULL, 0, NULL, 0, NULL));
	dt_ok(dat_ia_query(ia->ia, NULL, DAT_IA_FIELD_IA_MAX_PZS, &of_ia.attr,
			   DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR, &of_provider.attr));
	dt_check_bytes(of_ia.guard, sizeof(of_ia.guard), POISON);
	dt_check_bytes(of_provider.guard, sizeof(of_provider.guard), POISON);
	assert_string_equal(of_ia.attr.adapter_name, ia->attr.adapter_name);
	assert_int_equal(of_ia.attr.max_eps, ia->attr.max_eps);
	assert_int_equal(of_ia.attr.extension_version, 209);
	assert_int_equal(of_ia.attr.num_vendor_attr, ia->attr.num_vendor_attr);
	assert_string_equal(of_provider.attr.provider_name, ia->provider.provider_name);
	assert_int_equal(of_provider.attr.max_private_data_size,
			 ia->provider.max_private_data_size);
	assert_int_equal(of_provider.attr.num_provider_specific_attr,
			 ia->provider.num_provider_specific_attr);
}

/* D2-IA-10 D2-IA-16 D2-HA-04 D2-IW-02: and D2-IA-19, as other queries have come between */
static void ia_query__values__as_specified(void **state)
{
	struct dt_ia *ia = *state;
	DAT_PROVIDER_ATTR later;

	assert_string_equal(ia->attr.adapter_name, dt_adapter());
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 6; k++)
			assert_int_equal(ia->provider.evd_stream_merging_supported[i][k], DAT_TRUE);
	assert_int_equal(ia->provider.ha_supported, DAT_FALSE);
	assert_int_equal(ia->provider.supports_multipath, DAT_FALSE);
	assert_int_equal(ia->provider.ha_loadbalancing, DAT_HA_LB_NONE);
	assert_int_equal(ia->provider.is_signal_safe, DAT_FALSE);
	assert_int_equal(ia->provider.rdma_read_lmr_rmr_context_exposure, DAT_FALSE);
	dt_ok(dat_ia_query(ia->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &later));
	assert_ptr_equal(later.provider_specific_attr, ia->provider.provider_specific_attr);
	assert_string_equal(ia->provider.provider_specific_attr[0].name, "DAT_IB_PROVIDER_NAME");
	assert_int_equal(ia->attr.extension_supported, DAT_EXTENSION_IB);
}

/* D2-ATTR-01 D2-ATTR-02 D2-ATTR-03 D2-ATTR-05 D2-ATTR-06 D2-ATTR-07 D2-ATTR-08 D2-ATTR-09 D2-ATTR-10
 * D2-ATTR-11 D2-ATTR-12 D2-ATTR-13 D2-ATTR-19 D2-IA-18: those of the soft adapter, in this order */
static void named_attributes__of_soft_lo__in_order(void **state)
{
	static const DAT_NAMED_ATTR expected[] = {
		{"DAT_IB_PROVIDER_NAME", "OPENDAT"},
		{"DAT_IB_DEVICE_NAME", "lo"},
		{"DAT_IB_CONNECTIVITY_MODE", "DIRECT"},
		{"DAT_IB_RDMA_READ", "TRUE"},
		{"DAT_IB_NODE_GUID", "0000:0000:0000:0000"},
		{"DAT_IB_GID", "0000:0000:0000:0000:0000:ffff:7f00:0001"},
		{"DAT_IB_TRANSPORT_MTU", "4096"},
		{"DAT_IB_PORT_STATUS", "ACTIVE"},
		{"DAT_IB_PORT_NUMBER", "1"},
		{"DAT_EXTENSION_INTERFACE", "TRUE"},
		{"DAT_IB_FETCH_AND_ADD", "TRUE"},
		{"DAT_IB_CMP_AND_SWAP", "TRUE"},
		{"DAT_IB_IMMED_DATA", "TRUE"},
		{"DAT_COUNTERS", "TRUE"},
	};
	struct dt_ia *ia = *state;
	const DAT_NAMED_ATTR *found = ia->provider.provider_specific_attr;

	if (strcmp(dt_adapter(), "soft-lo") != 0)
		skip();
	assert_true((size_t)ia->provider.num_provider_specific_attr >= COUNT_OF(expected));
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		assert_string_equal(found[i].name, expected[i].name);
		assert_string_equal(found[i].value, expected[i].value);
	}
}

/* D2-ATTR-14 D2-ATTR-16 D2-ATTR-18: what no adapter has is not named */
static void named_attributes__not_supported__missing(void **state)
{
	struct dt_ia *ia = *state;

	for (DAT_COUNT i = 0; i < ia->provider.num_provider_specific_attr; i++) {
		const char *name = ia->provider.provider_specific_attr[i].name;

		assert_string_not_equal(name, "DAT_IB_UD");
		assert_int_not_equal(strncmp(name, "DAT_COLL_", 9), 0);
		assert_null(strstr(name, "SSP"));
	}
}

/* D2-OPEN-10 D2-OPEN-11 */
static void ia_handles__providers_or_closed__refused(void **state)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia, providers;

	(void)state;
	dt_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &evd, &ia));
	assert_true((uintptr_t)ia < 4096);
	dt_ok(dats_get_ia_handle((unsigned long)(uintptr_t)ia, &providers));
	dt_fails(dat_ia_query(providers, NULL, 0, NULL, 0, NULL), DAT_INVALID_HANDLE);
	dt_fails(dat_ia_close(providers, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	for (int i = 0; i < 2; i++)
		dt_fails_with(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
}

/* D2-REG-06 D2-REG-07 D2-REG-08: the first word of every handle but that of the IA */
static void table__of_a_handle__complete(void **state)
{
	struct dt_ia *ia = *state;
	void *const *table = *(void *const *const *)ia->pz;

	assert_int_equal(sizeof(DAT_PROVIDER), 81 * sizeof(void *));
	assert_ptr_equal(table, *(void *const *const *)ia->async);
	assert_string_equal(table[0], dt_adapter());
	for (int i = 1; i < 81; i++)
		assert_non_null(table[i]);
}

/* D2-HA-02 */
static void providers_related__names__answer_or_refusal(void **state)
{
	const DAT_NAME_PTR lo = "soft-lo", same = "ofa-v2-lo", none = "no-such-name";
	DAT_HA_RELATIONSHIP answer = DAT_HA_EXTENSION_BASE;

	(void)state;
	dt_ok(dat_registry_providers_related(lo, same, &answer));
	assert_int_equal(answer, DAT_HA_TRUE);
	dt_fails_with(dat_registry_providers_related(NULL, lo, &answer), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG1);
	dt_fails_with(dat_registry_providers_related(lo, NULL, &answer), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_fails_with(dat_registry_providers_related(lo, same, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_fails(dat_registry_providers_related(lo, none, &answer), DAT_PROVIDER_NOT_FOUND);
}

/* --- memory --- */

static unsigned char memory[REGION] __attribute__((aligned(REGION)));

static DAT_RETURN create(struct dt_ia *ia, int priv, DAT_VA_TYPE type, DAT_LMR_HANDLE *lmr)
{
	const DAT_REGION_DESCRIPTION region = {.for_va = memory};

	return dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, ia->pz,
			      (DAT_MEM_PRIV_FLAGS)priv, type, lmr, NULL, NULL, NULL, NULL);
}

/* D2-LMR-01 D2-LMR-02 D2-LMR-07 D2-LMR-08 D2-LMR-09 D2-LMR-11 D2-LMR-13 */
static void lmr_create__arguments_of_2__taken_or_refused(void **state)
{
	struct dt_ia *ia = *state;
	DAT_LMR_PARAM param;
	DAT_LMR_HANDLE lmr;

	dt_fails_with(create(ia, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	dt_fails_with(create(ia, DAT_MEM_PRIV_ALL_FLAG, (DAT_VA_TYPE)2, &lmr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	dt_fails_with(create(ia, 0x80, DAT_VA_TYPE_VA, &lmr), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG6);
	assert_int_equal(ia->attr.zb_supported, DAT_FALSE);
	dt_fails(create(ia, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &lmr), DAT_MODEL_NOT_SUPPORTED);
	dt_ok(create(ia, 0x73, DAT_VA_TYPE_VA, &lmr));
	for (int bit = 0x1; bit <= 0x400; bit <<= 1)
		dt_ok(dat_lmr_query(lmr, (DAT_LMR_PARAM_MASK)bit, &param));
	dt_fails_with(dat_lmr_query(lmr, (DAT_LMR_PARAM_MASK)0x800, &param), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	memset(&param, POISON, sizeof(param));
	dt_ok(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	assert_int_equal(param.va_type, DAT_VA_TYPE_VA);
	assert_int_equal(param.length, REGION);
	if (!dt_is_verbs()) /* a device may drop the privilege */
		assert_int_equal(param.mem_priv, 0x73);
	dt_ok(dat_lmr_free(lmr));
}

/* D2-RMR-01 D2-RMR-02 D2-RMR-03 D2-RMR-07 */
static void rmr_bind__arguments_of_2__refused(void **state)
{
	const DAT_MEM_PRIV_FLAGS priv = DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	const DAT_RMR_COOKIE cookie = {.as_64 = 7};
	struct rig *rig = *state;
	DAT_LMR_TRIPLET piece = dt_seg(&rig->y, 0, 64);
	DAT_EP_HANDLE ep = rig->b.ep;
	DAT_RMR_CONTEXT key;
	DAT_RMR_HANDLE rmr;

	rig_link(rig);
	ep = rig->b.ep;
	dt_ok(dat_rmr_create(rig->ia.pz, &rmr));
	dt_fails_with(
		dat_rmr_bind(rmr, rig->y.lmr, NULL, priv, DAT_VA_TYPE_VA, ep, cookie, 0, &key),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(
		dat_rmr_bind(rmr, rig->y.lmr, &piece, priv, DAT_VA_TYPE_VA, ep, cookie, 0, NULL),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
	dt_fails_with(
		dat_rmr_bind(rmr, rig->x.lmr, &piece, priv, DAT_VA_TYPE_VA, ep, cookie, 0, &key),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_rmr_bind(rmr, DAT_HANDLE_NULL, &piece, priv, DAT_VA_TYPE_VA, ep, cookie,
				   0, &key),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(
		dat_rmr_bind(rmr, rig->y.lmr, &piece, priv, (DAT_VA_TYPE)2, ep, cookie, 0, &key),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	expect_quiet(&rig->b);
	dt_ok(dat_rmr_free(rmr));
}

/* D2-RMR-04 D2-RMR-08 D2-RMR-15 D2-DTO-11 */
static void rmr__bound_and_unbound__queried(void **state)
{
	const DAT_RMR_COOKIE cookie = {.as_64 = 7};
	struct rig *rig = *state;
	DAT_LMR_TRIPLET piece = dt_seg(&rig->y, 0, 64);
	DAT_RMR_PARAM param;
	DAT_RMR_CONTEXT key;
	DAT_RMR_HANDLE rmr;

	rig_link(rig);
	dt_ok(dat_rmr_create(rig->ia.pz, &rmr));
	memset(&param, POISON, sizeof(param));
	dt_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL & ~DAT_RMR_FIELD_LMR_TRIPLET, &param));
	assert_int_equal(param.rmr_scope, DAT_RMR_SCOPE_PZ);
	assert_int_equal(param.va_type, DAT_VA_TYPE_VA);
	dt_fails_with(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)0x80, &param), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_ok(dat_rmr_bind(rmr, rig->y.lmr, &piece, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			   rig->b.ep, cookie, 0, &key));
	assert_int_equal(dt_event(rig->b.request).event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	dt_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	assert_int_equal(param.lmr_triplet.segment_length, 64);
	assert_int_equal(param.rmr_context, key);
	memset(&piece, POISON, sizeof(piece));
	piece.segment_length = 0;
	dt_ok(dat_rmr_bind(rmr, DAT_HANDLE_NULL, &piece, DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			   DAT_VA_TYPE_VA, rig->b.ep, cookie, 0, NULL));
	assert_int_equal(dt_event(rig->b.request).event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	dt_ok(dat_rmr_free(rmr));
}

/* D2-DTO-20: two segments; the second one is looked at, too */
static void lmr_sync__segments_of_2__checked(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET segs[2] = {dt_seg(&rig->x, 0, 8), dt_seg(&rig->y, 8, 8)};
	const DAT_VLEN count = 2;

	dt_ok(dat_lmr_sync_rdma_read(rig->ia.ia, segs, count));
	dt_ok(dat_lmr_sync_rdma_write(rig->ia.ia, segs, count));
	segs[1].segment_length = RIG_LEN;
	dt_fails_with(dat_lmr_sync_rdma_read(rig->ia.ia, segs, count), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_fails_with(dat_lmr_sync_rdma_write(rig->ia.ia, segs, count), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
}

/* --- CNOs --- */

static bool is_readable(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, 0) == 1;
}

static void post_software(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	dt_ok(dat_evd_post_se(evd, &event));
}

static void ignore_event(DAT_PVOID instance_data, DAT_EVD_HANDLE evd)
{
	(void)instance_data;
	(void)evd;
}

/* D2-CNO-12 D2-CNO-13 */
static void cno__each_proxy__its_type(void **state)
{
	const DAT_OS_WAIT_PROXY_AGENT agent = {*state, ignore_event};
	struct dt_ia *ia = *state;
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;
	int fd;

	dt_ok(dat_cno_create(ia->ia, agent, &cno));
	dt_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	assert_int_equal(param.proxy_type, DAT_PROXY_TYPE_AGENT);
	assert_ptr_equal(param.proxy.agent.instance_data, agent.instance_data);
	assert_ptr_equal(param.proxy.agent.proxy_agent_func, agent.proxy_agent_func);
	dt_ok(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	dt_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	assert_int_equal(param.proxy_type, DAT_PROXY_TYPE_NONE);
	dt_ok(dat_cno_free(cno));

	dt_ok(dat_cno_fd_create(ia->ia, &fd, &cno));
	dt_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	assert_int_equal(param.proxy_type, DAT_PROXY_TYPE_FD);
	assert_int_equal(param.proxy.fd, fd);
	dt_fails_with(dat_cno_modify_agent(cno, agent), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_CNO_IN_USE);
	dt_fails_with(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_CNO_IN_USE);
	dt_ok(dat_cno_free(cno));
}

/* D2-CNO-02 D2-CNO-03 D2-CNO-07 D2-CNO-08 D2-CNO-16 */
static void cno_fd_create__event__readable_until_taken(void **state)
{
	struct dt_ia *ia = *state;
	DAT_EVD_HANDLE evd, found;
	DAT_CNO_HANDLE cno;
	int fd = -1, again;

	dt_ok(dat_cno_fd_create(ia->ia, &fd, &cno));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	dt_ok(dat_opendat_cno_fd(cno, &again));
	assert_int_equal(again, fd);
	dt_ok(dat_evd_create(ia->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	assert_false(is_readable(fd));
	dt_returns(dat_cno_trigger(cno, &found), DAT_QUEUE_EMPTY);
	assert_ptr_equal(found, DAT_HANDLE_NULL);
	post_software(evd);
	assert_true(is_readable(fd));
	dt_ok(dat_cno_trigger(cno, &found));
	assert_ptr_equal(found, evd);
	assert_false(is_readable(fd));
	dt_returns(dat_cno_trigger(cno, &found), DAT_QUEUE_EMPTY);
	dt_drain(evd);
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_cno_free(cno));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

/* D2-CNO-06: the instance can be closed, so no CNO is left */
static void cno_fd_create__no_descriptor__refused(void **state)
{
	struct dt_ia *ia = *state;
	struct rlimit before, none;
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
	int fd = dup(STDERR_FILENO), last;
	DAT_RETURN ret;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fd; /* the next one */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = dat_cno_fd_create(ia->ia, &fd, &cno);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	dt_fails(ret, DAT_INSUFFICIENT_RESOURCES);
	assert_ptr_equal(cno, DAT_HANDLE_NULL);
	last = dup(STDERR_FILENO);
	assert_int_equal(last, (int)none.rlim_cur);
	close(last);
	dt_ok(dat_cno_fd_create(ia->ia, &fd, &cno));
	dt_ok(dat_cno_free(cno));
}

/* D2-CNO-05 D2-CNO-10 D2-CNO-15 */
static void cno_calls__bad_arguments__refused(void **state)
{
	struct dt_ia *ia = *state;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	int fd;

	dt_fails_with(dat_cno_fd_create(ia->ia, NULL, &cno), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_fails_with(dat_cno_fd_create(ia->ia, &fd, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_fails_with(dat_cno_fd_create(DAT_HANDLE_NULL, &fd, &cno), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	dt_ok(dat_cno_create(ia->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_fails_with(dat_cno_trigger(cno, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_cno_trigger(ia->pz, &evd), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_cno_query(cno, DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_cno_free(cno));
}

/* D2-CNO-09 D2-CNO-14 D2-CNO-17 */
static void cno__without_descriptor__triggered_and_queried(void **state)
{
	struct dt_ia *ia = *state;
	DAT_EVD_HANDLE evd, found;
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;

	dt_ok(dat_cno_create(ia->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	for (int mask = 0; mask < 8; mask++) {
		memset(&param, POISON, sizeof(param));
		dt_ok(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)mask, &param));
		if (mask) {
			assert_ptr_equal(param.ia_handle, ia->ia);
			assert_int_equal(param.proxy_type, DAT_PROXY_TYPE_NONE);
		}
	}
	dt_fails_with(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)8, &param), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_ok(dat_evd_create(ia->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	post_software(evd);
	dt_ok(dat_cno_trigger(cno, &found));
	assert_ptr_equal(found, evd);
	dt_drain(evd);
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_evd_modify_cno(ia->async, cno));
	dt_ok(dat_evd_modify_cno(ia->async, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
}

/* --- events --- */

/* D2-EVT-06 D2-EVT-09 D2-EVT-10 D2-GEN-20 */
static void evd__flag_and_numbers_of_extensions__as_specified(void **state)
{
	static const unsigned int numbers[] = {0x1, 0x8101, 0x20000, 0x40000, 0x80000};
	const DAT_EVD_FLAGS flags = DAT_EVD_SOFTWARE_FLAG | DAT_EVD_EXTENSION_BASE;
	struct dt_ia *ia = *state;
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	dt_ok(dat_evd_create(ia->ia, 8, DAT_HANDLE_NULL, flags, &evd));
	dt_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	assert_int_equal(param.evd_flags, flags);
	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		event = (DAT_EVENT){.event_number = numbers[i]};
		dt_fails_with(dat_evd_post_se(evd, &event), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	}
	assert_int_equal(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(dat_evd_dequeue(ia->async, &event), DAT_QUEUE_EMPTY);
	event = (DAT_EVENT){.event_number = 0x10001};
	event.event_data.software_event_data.pointer = &event;
	memset(event.event_extension_data, POISON, sizeof(event.event_extension_data));
	dt_ok(dat_evd_post_se(evd, &event));
	memset(&event, 0, sizeof(event));
	dt_ok(dat_evd_dequeue(evd, &event));
	assert_ptr_equal(event.event_data.software_event_data.pointer, &event);
	dt_check_bytes(event.event_extension_data, sizeof(event.event_extension_data), 0);
	dt_ok(dat_evd_free(evd));
}

/* --- endpoints --- */

/* D2-EP-01 D2-EP-02 D2-EP-05 D2-EP-10 D2-EP-13 D2-UD-01 */
static void ep__attributes_and_masks__as_specified(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ep first;
	DAT_EP_PARAM param, again;
	DAT_EP_HANDLE ep;

	dt_ep_create(ia, ia->pz, NULL, &first);
	for (int bit = 0; bit < 31; bit++)
		dt_ok(dat_ep_query(first.ep, (DAT_EP_PARAM_MASK)1 << bit, &param));
	dt_ok(dat_ep_query(first.ep, ~(DAT_EP_PARAM_MASK)0, &param));
	assert_int_equal(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_ep_create(ia->ia, ia->pz, first.recv, first.request, first.conn, &param.ep_attr,
			    &ep));
	dt_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &again));
	assert_int_equal(again.ep_attr.max_message_size, param.ep_attr.max_message_size);
	assert_int_equal(again.ep_attr.max_rdma_size, param.ep_attr.max_rdma_size);
	assert_int_equal(again.ep_attr.max_request_dtos, param.ep_attr.max_request_dtos);
	assert_int_equal(again.ep_attr.max_rdma_read_out, param.ep_attr.max_rdma_read_out);
	dt_ok(dat_ep_free(ep));
	param.ep_attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	dt_fails(dat_ep_create(ia->ia, ia->pz, first.recv, first.request, first.conn,
			       &param.ep_attr, &ep),
		 DAT_MODEL_NOT_SUPPORTED);
	param.ep_attr.service_type = (DAT_SERVICE_TYPE)2;
	dt_fails_with(dat_ep_create(ia->ia, ia->pz, first.recv, first.request, first.conn,
				    &param.ep_attr, &ep),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	/* the operations of datagrams */
	for (int op = DAT_IB_UD_CM_FREE_OP; op <= DAT_IB_UD_AH_FREE_OP; op++)
		dt_returns(dat_extension_op(first.ep, op, NULL), 0xbfff0000);
	dt_returns(dat_extension_op(first.ep, DAT_IB_UD_SEND_OP), 0xbfff0000);
	dt_ep_free(&first);
}

/* D2-EP-08 */
static void ep_create__few_or_many_requests__created(void **state)
{
	static const DAT_COUNT counts[] = {1, 20000};
	struct dt_ia *ia = *state;
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	struct dt_ep ep;

	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		dt_ep_attr(ia, &attr);
		attr.max_recv_dtos = attr.max_request_dtos = counts[i];
		dt_ep_create(ia, ia->pz, &attr, &ep);
		dt_ok(dat_ep_query(ep.ep, DAT_EP_FIELD_ALL, &param));
		assert_true(param.ep_attr.max_recv_dtos >= counts[i]);
		assert_true(param.ep_attr.max_request_dtos >= counts[i]);
		dt_ep_free(&ep);
	}
}

/* D2-EP-14 D2-EP-11 D2-EP-10 */
static void ep_connect__multipath__requested_or_required(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_listener listener;
	DAT_EP_PARAM param;
	struct dt_ep a, b;

	dt_listen(ia, &listener);
	dt_ep_create(ia, ia->pz, NULL, &a);
	dt_ep_create(ia, ia->pz, NULL, &b);
	dt_fails(dat_ep_connect(a.ep, ia->attr.ia_address_ptr, listener.qual, DT_WAIT_US, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_MULTIPATH_REQUIRED_FLAG),
		 DAT_MODEL_NOT_SUPPORTED);
	dt_ok(dat_ep_connect(a.ep, ia->attr.ia_address_ptr, listener.qual, DT_WAIT_US, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_MULTIPATH_REQUESTED_FLAG));
	dt_ok(dat_cr_accept(dt_request(&listener), b.ep, 0, NULL));
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	assert_int_equal(param.ep_state, 9);
	dt_ok(dat_ep_get_status(a.ep, NULL, NULL, NULL));
	dt_ok(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&a);
	dt_ep_free(&b);
	dt_unlisten(&listener);
}

/* D2-SRQ-01 */
static void srq_query__working__operational(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(srq_query(bench->srq).srq_state, 1);
	assert_int_equal(DAT_SRQ_STATE_OPERATIONAL, 1);
}

/* D2-GEN-15: they expand to a call with a number of their own */
static void macros__unusable_in_the_reference__compile(void **state)
{
	DAT_IB_COLLECTIVE_HANDLE none = NULL;
	const DAT_CONTEXT context = {.as_64 = 0};
	DAT_UINT64 clock = 0;

	(void)state;
	dt_fails(dat_ib_start_counter(DAT_HANDLE_NULL, 0), DAT_INVALID_HANDLE);
	dt_fails(dat_ib_stop_counter(DAT_HANDLE_NULL, 0), DAT_INVALID_HANDLE);
	dt_fails(dat_ib_collective_set_clock(none, clock, context), DAT_INVALID_HANDLE);
	dt_fails(dat_ib_collective_read_clock(none, &clock), DAT_INVALID_HANDLE);
	dt_fails(dat_ib_collective_gatherv(none, NULL, 0, NULL, NULL, NULL, 0, context, 0),
		 DAT_INVALID_HANDLE);
	dt_fails(dat_ib_collective_alltoallv(none, NULL, NULL, NULL, NULL, NULL, NULL, context, 0),
		 DAT_INVALID_HANDLE);
	assert_int_not_equal(DAT_IB_COLLECTIVE_SET_CLOCK_OP, DAT_IB_COLLECTIVE_READ_CLOCK_OP);
	assert_int_equal(DAT_IA_FIELD_IA_MAX_DTO_PER_OP, DAT_IA_FIELD_IA_MAX_DTO_PER_EP);
}

/* D2-EXT-22 */
static void strerror__codes_of_extensions__have_texts(void **state)
{
	const char *text = NULL;

	(void)state;
	dt_ok(dat_strerror_extension(DAT_IB_ERR, &text));
	assert_string_equal(text, "DAT_IB_ERR");
	dt_ok(dat_strerror_extension(DAT_IB_COLLECTIVE_ERR, &text));
	assert_string_equal(text, "DAT_IB_COLLECTIVE_ERR");
	dt_ok(dat_strerror_ext_status(DAT_OP_SUCCESS, &text));
	assert_string_equal(text, "DAT_OP_SUCCESS");
	dt_ok(dat_strerror_ext_status(DAT_IB_OP_ERR, &text));
	assert_string_equal(text, "DAT_IB_OP_ERR");
	dt_ok(dat_strerror_ext_status(DAT_IB_COLL_COMP_ERR, &text));
	assert_string_equal(text, "DAT_IB_COLL_COMP_ERR");
	dt_fails(dat_strerror_ext_status((DAT_IB_STATUS)99, &text), DAT_INVALID_PARAMETER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_ia_test(ia_query__any_bit__fills_everything_and_no_more),
		dt_ia_test(ia_query__values__as_specified),
		dt_ia_test(named_attributes__of_soft_lo__in_order),
		dt_ia_test(named_attributes__not_supported__missing),
		cmocka_unit_test(ia_handles__providers_or_closed__refused),
		dt_ia_test(table__of_a_handle__complete),
		cmocka_unit_test(providers_related__names__answer_or_refusal),
		dt_ia_test(lmr_create__arguments_of_2__taken_or_refused),
		rig_test(rmr_bind__arguments_of_2__refused),
		rig_test(rmr__bound_and_unbound__queried),
		rig_test(lmr_sync__segments_of_2__checked),
		dt_ia_test(cno_fd_create__event__readable_until_taken),
		dt_ia_test(cno__each_proxy__its_type),
		dt_ia_test(cno_fd_create__no_descriptor__refused),
		dt_ia_test(cno_calls__bad_arguments__refused),
		dt_ia_test(cno__without_descriptor__triggered_and_queried),
		dt_ia_test(evd__flag_and_numbers_of_extensions__as_specified),
		dt_ia_test(ep__attributes_and_masks__as_specified),
		dt_ia_test(ep_create__few_or_many_requests__created),
		dt_ia_test(ep_connect__multipath__requested_or_required),
		bench_test(srq_query__working__operational),
		cmocka_unit_test(macros__unusable_in_the_reference__compile),
		cmocka_unit_test(strerror__codes_of_extensions__have_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
