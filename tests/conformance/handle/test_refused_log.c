// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the log says (DAT_DBG_TYPE=1): each refused argument is named with its value and the limit,
 * and so is each refused handle. The cases are in refused_cases.h.
 */
#include "world.h"

#include <dat/dat_registry.h>
#include <dat/opendat.h>
#include <stdio.h>

#include "conn_util.h"
#include "log_util.h"
#include "refused_cases.h"

#define ANY_MASK (~0u)

/* Variables of the cases. */
static struct {
	struct dt_ep idle, with_srq;
	DAT_EVD_HANDLE
	solicited; /* takes receives of an endpoint with DAT_COMPLETION_SOLICITED_... */
	DAT_EVD_HANDLE evd, none;
	DAT_IA_HANDLE ia;
	DAT_EP_HANDLE ep;
	DAT_CNO_HANDLE cno;
	DAT_LMR_HANDLE lmr;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_SRQ_HANDLE srq;
	DAT_IA_ATTR ia_attr;
	DAT_PROVIDER_ATTR provider;
	DAT_EP_ATTR attr, attr_dtos;
	DAT_SRQ_ATTR srq_attr;
	DAT_EVENT event, software, completion;
	DAT_OS_WAIT_PROXY_AGENT agent;
	DAT_OPENDAT_PEER peer;
	DAT_OPENDAT_DTO_DATA dto_data;
	DAT_LMR_TRIPLET local, wrong;
	DAT_RMR_TRIPLET remote;
	DAT_DTO_COOKIE cookie;
	DAT_RMR_CONTEXT context;
	DAT_CONN_QUAL qual;
	DAT_COUNT count;
	DAT_PROVIDER_INFO info, *infos[1];
	DAT_PROVIDER table;
	const char *text;
	DAT_CR_PARAM cr_param;
	DAT_EVD_PARAM evd_param;
	DAT_CNO_PARAM cno_param;
	DAT_EP_PARAM ep_param;
	DAT_LMR_PARAM lmr_param;
	DAT_RMR_PARAM rmr_param;
	DAT_PSP_PARAM psp_param;
	DAT_RSP_PARAM rsp_param;
	DAT_PZ_PARAM pz_param;
	DAT_SRQ_PARAM srq_param;
} s;

static DAT_RETURN create_with(struct world *w, const DAT_EP_ATTR *attr)
{
	return dat_ep_create(w->ia.ia, w->ia.pz, s.idle.recv, s.idle.request, s.idle.conn, attr,
			     &s.ep);
}

static DAT_RETURN register_as(struct world *w, unsigned int type, void *p, DAT_VLEN len,
			      unsigned int privileges, DAT_LMR_HANDLE *lmr)
{
	const DAT_REGION_DESCRIPTION region = {.for_va = p};

	return dat_lmr_create(w->ia.ia, (DAT_MEM_TYPE)type, region, len, w->ia.pz,
			      (DAT_MEM_PRIV_FLAGS)privileges, lmr, NULL, NULL, NULL, NULL);
}

#define FUNCTION(call, number, name, text, expression)                                             \
	static DAT_RETURN refused_##call##_##number(struct world *w)                               \
	{                                                                                          \
		(void)w;                                                                           \
		return expression;                                                                 \
	}
REFUSED_CASES(FUNCTION)

#define ENTRY(call, number, name, text, expression)                                                \
	{refused_##call##_##number, number, "dat_" #call ": argument " #number ", " #name ": ",    \
	 text},

static const struct refused {
	DAT_RETURN (*call)(struct world *w);
	unsigned int number;
	const char *start; /* of the line */
	const char *part;  /* of the rest */
} cases[] = {REFUSED_CASES(ENTRY)};

/* An endpoint whose EVD for receives takes those with DAT_COMPLETION_SOLICITED_WAIT_FLAG only. */
static void make_solicited(struct world *w, struct dt_ep *ep_out)
{
	DAT_EP_ATTR attr = s.attr;

	s.solicited = dt_evd_create(&w->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	memset(ep_out, 0, sizeof(*ep_out));
	ep_out->request = dt_evd_create(&w->ia, 64, DAT_EVD_DTO_FLAG);
	ep_out->conn = dt_evd_create(&w->ia, 64, DAT_EVD_CONNECTION_FLAG);
	ep_out->recv = s.solicited;
	dt_ok(dat_ep_create(w->ia.ia, w->ia.pz, s.solicited, ep_out->request, ep_out->conn, &attr,
			    &ep_out->ep));
}

static void make_variables(struct world *w)
{
	dt_ep_attr(&w->ia, &s.attr);
	s.attr_dtos = s.attr;
	s.attr_dtos.max_request_dtos = INT32_MAX;
	dt_ep_create(&w->ia, w->ia.pz, NULL, &s.idle);
	s.with_srq.recv = dt_evd_create(&w->ia, 64, DAT_EVD_DTO_FLAG);
	s.with_srq.request = dt_evd_create(&w->ia, 64, DAT_EVD_DTO_FLAG);
	s.with_srq.conn = dt_evd_create(&w->ia, 64, DAT_EVD_CONNECTION_FLAG);
	s.attr.max_recv_dtos = DAT_HW_DEFAULT;
	s.attr.srq_soft_hw = DAT_HW_DEFAULT;
	dt_ok(dat_ep_create_with_srq(w->ia.ia, w->ia.pz, s.with_srq.recv, s.with_srq.request,
				     s.with_srq.conn, w->srq, &s.attr, &s.with_srq.ep));
	s.none = DAT_HANDLE_NULL;
	s.agent.instance_data = &s;
	s.software.event_number = DAT_SOFTWARE_EVENT;
	s.completion.event_number = DAT_DTO_COMPLETION_EVENT;
	s.completion.evd_handle = s.idle.request;
	s.local = dt_seg(&w->buf, 0, 1);
	s.wrong = s.local;
	s.wrong.virtual_address--;
	s.remote = dt_rseg(&w->buf, 0, 1);
	s.srq_attr = (DAT_SRQ_ATTR){1, 1, 1};
	s.infos[0] = &s.info;
	strcpy(s.info.ia_name, "absent");
}

static void free_variables(struct dt_ep *solicited)
{
	dt_ep_free(solicited);
	dt_ep_free(&s.with_srq);
	dt_ep_free(&s.idle);
}

/* GEN-30 */
static void log__refused_argument__named_with_value_and_limit(void **state)
{
	struct world *w = *state;
	struct dt_ep solicited;

	make_variables(w);
	dt_ep_attr(&w->ia, &s.attr);
	make_solicited(w, &solicited);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct refused *one = &cases[i];
		const char *line;
		DAT_RETURN ret;

		log_begin();
		ret = one->call(w);
		line = log_last_line();
		/* an open that fails is reported once more, with the name of the adapter */
		if (strstr(line, ": not opened: "))
			line = log_line_before();
		if (ret != DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + one->number - 1) ||
		    strncmp(line, one->start, strlen(one->start)) != 0 || !strstr(line, one->part))
			fail_msg("%s...%s: %s, \"%s\"", one->start, one->part, dt_strerror(ret),
				 line);
	}
	free_variables(&solicited);
}

/* GEN-30: every call on a handle that is none, or of a freed object */
static void log__refused_handle__call_and_parameter_named(void **state)
{
	const struct world *w = *state;

	(void)w;
	for (size_t i = 0; i < WORLD_CALLS; i++) {
		const struct world_call *call = &world_calls[i];
		const char *line;

		log_begin();
		(void)call->fn(DT_NEVER_A_HANDLE);
		line = log_last_line();
		if (strncmp(line, "dat_", 4) != 0 || !strstr(line, ": argument ") ||
		    !strstr(line, "handle"))
			fail_msg("%s: \"%s\"", call->name, line);
	}
}

/* GEN-30: a handle of another type, and a call that the state does not allow */
static void log__wrong_type_or_state__object_named(void **state)
{
	struct world *w = *state;
	unsigned int number;
	DAT_EP_HANDLE ep;
	const char *line;

	log_begin();
	dt_fails_with(dat_ep_create(w->ia.ia, w->cno, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				    DAT_HANDLE_NULL, NULL, &ep),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	line = log_last_line();
	assert_int_equal(sscanf(line, "dat_ep_create: argument 2, pz_handle: cno %u has", &number),
			 1);
	log_begin();
	dt_fails(dat_ep_reset(w->active.ep), DAT_INVALID_STATE);
	line = log_last_line();
	assert_int_equal(sscanf(line, "ep %u: ", &number), 1);
	assert_non_null(strstr(line, "DAT_EP_STATE_ACTIVE_CONNECTION_PENDING"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(log__refused_argument__named_with_value_and_limit),
		world_test(log__refused_handle__call_and_parameter_named),
		world_test(log__wrong_type_or_state__object_named),
	};

	log_capture_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
