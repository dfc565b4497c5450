// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_open as far as the provider meets it: instances, the asynchronous EVD, refusals. How the
 * registry finds an adapter is tested with the registry.
 */
#include "conf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/resource.h>

static DAT_RETURN try_open(const char *name, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
			   DAT_IA_HANDLE *ia)
{
	return dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, qlen, async, ia);
}

static void close_ok(DAT_IA_HANDLE ia)
{
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static DAT_EVD_PARAM query_evd(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	dt_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param;
}

/*
 * Makes an asynchronous event: in DISCONNECTED each posted Receive is flushed at once, and the
 * second one finds an EVD of one place full. Returns that EVD; `ep` is to be freed by dt_ep_free.
 */
static DAT_EVD_HANDLE overflow(struct dt_ia *ia, struct dt_ep *ep)
{
	DAT_EP_ATTR attr;

	dt_ep_attr(ia, &attr);
	memset(ep, 0, sizeof(*ep));
	ep->recv = dt_evd_create(ia, 1, DAT_EVD_DTO_FLAG);
	ep->request = dt_evd_create(ia, 64, DAT_EVD_DTO_FLAG);
	ep->conn = dt_evd_create(ia, 8, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(ia->ia, ia->pz, ep->recv, ep->request, ep->conn, &attr, &ep->ep));
	dt_connect(ia, ep->ep, 1ull << 62 | (uint64_t)getpid());
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	for (int i = 0; i < 3; i++)
		dt_ok(dat_ep_post_recv(ep->ep, 0, NULL, dt_cookie(1), 0));
	return ep->recv;
}

static void expect_overflow(DAT_EVD_HANDLE async, DAT_EVD_HANDLE evd)
{
	const DAT_EVENT event = dt_event(async);

	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, evd);
}

/* --- instances --- */

#define SPACE_MOST 20480u /* KiB: 18 MiB for the table of keys, the rest for everything else */

static unsigned long address_space_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long size = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmSize: %lu", &size) != 1)
		;
	fclose(file);
	assert_true(size > 0);
	return size;
}

/*
 * IA-OPEN-01: of the instances after the first, which reserves the handles of all. A program may
 * run under a limit of its address space. First in this file: later a thread may get the stack of
 * one that has ended.
 */
static void ia_open__another_instance__little_address_space(void **state)
{
	struct dt_ia first, second;
	unsigned long before;

	(void)state;
	if (DT_SLOW || dt_is_verbs())
		skip();
	dt_ia_open(&first);
	before = address_space_kib();
	dt_ia_open(&second);
	assert_in_range(address_space_kib() - before, 1, SPACE_MOST);
	dt_ia_close(&second);
	dt_ia_close(&first);
}

/* IA-OPEN-01 IA-OPEN-02 */
static void ia_open__several_times__distinct_instances(void **state)
{
	struct dt_ia ia[8];
	DAT_HANDLE_TYPE type;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ia); i++) {
		dt_ia_open(&ia[i]);
		assert_non_null(ia[i].ia);
		dt_ok(dat_get_handle_type(ia[i].ia, &type));
		assert_int_equal(type, DAT_HANDLE_TYPE_IA);
		for (size_t j = 0; j < i; j++) {
			assert_ptr_not_equal(ia[i].ia, ia[j].ia);
			assert_ptr_not_equal(ia[i].async, ia[j].async);
		}
	}
	for (size_t i = 0; i < COUNT_OF(ia); i++)
		dt_ia_close(&ia[i]);
}

/* IA-OPEN-03 IA-OPEN-38 IA-CLOSE-22 */
static void ia_open__one_closed__objects_of_the_other_work(void **state)
{
	struct dt_pair pair;
	struct dt_ia other;
	struct dt_buf buf;

	(void)state;
	for (int abrupt = 0; abrupt < 2; abrupt++) {
		dt_ia_open(&other);
		dt_pair_open(&pair);
		dt_buf_create(&pair.ia, pair.ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
		if (abrupt)
			dt_ia_abort(&other);
		else
			dt_ia_close(&other);
		conf_write(&pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 64, 64));
		conf_send(&pair, dt_seg(&buf, 0, 64), dt_seg(&buf, 64, 64));
		dt_no_event(pair.a.conn);
		dt_buf_free(&buf);
		dt_pair_close(&pair);
	}
}

/* --- an asynchronous EVD of its own --- */

/* IA-OPEN-04 IA-OPEN-05 IA-OPEN-06 IA-OPEN-09 EVD-QUERY-07 */
static void ia_open__null_evd__makes_one(void **state)
{
	static const DAT_COUNT lengths[] = {1, 2, 17, 1000};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
		DAT_HANDLE_TYPE type;

		dt_ok(try_open(dt_adapter(), lengths[i], &async, &ia));
		dt_ok(dat_get_handle_type(async, &type));
		assert_int_equal(type, DAT_HANDLE_TYPE_EVD);
		const DAT_EVD_PARAM param = query_evd(async);

		assert_true(param.evd_flags & DAT_EVD_ASYNC_FLAG);
		assert_true(param.evd_qlen >= lengths[i]);
		assert_null(param.cno_handle);
		assert_ptr_equal(param.ia_handle, ia);
		assert_int_equal(param.evd_state & 0xf,
				 DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
		dt_no_event(async);
		close_ok(ia);
	}
}

/* IA-OPEN-08 EVD-RESIZE-12 */
static void ia_open__evd_it_made__can_be_resized(void **state)
{
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	dt_ok(dat_evd_resize(ia.async, 100));
	assert_true(query_evd(ia.async).evd_qlen >= 100);
	dt_ok(dat_evd_resize(ia.async, 3));
	assert_true(query_evd(ia.async).evd_qlen >= 3);
	dt_ia_close(&ia);
}

/* IA-OPEN-07 EVD-MODIFY-CNO-11 */
static void ia_open__evd_it_made__takes_a_cno(void **state)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_CNO_HANDLE cno;
	struct dt_ia ia;
	struct dt_ep ep;

	(void)state;
	dt_ia_open(&ia);
	dt_ok(dat_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_modify_cno(ia.async, cno));
	assert_ptr_equal(query_evd(ia.async).cno_handle, cno);
	const DAT_EVD_HANDLE full = overflow(&ia, &ep);

	dt_ok(dat_cno_wait(cno, DT_WAIT_US, &evd));
	assert_ptr_equal(evd, ia.async);
	expect_overflow(ia.async, full);
	dt_ok(dat_evd_modify_cno(ia.async, DAT_HANDLE_NULL));
	assert_null(query_evd(ia.async).cno_handle);
	dt_ok(dat_cno_free(cno));
	dt_ep_free(&ep);
	dt_ia_close(&ia);
}

/* IA-OPEN-10 IA-OPEN-34 */
static void ia_open__queue_length_not_positive__invalid_parameter(void **state)
{
	static const DAT_COUNT lengths[] = {0, -1, INT32_MIN};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

		dt_fails_with(try_open(dt_adapter(), lengths[i], &async, &ia),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		assert_null(ia);
	}
}

/* IA-OPEN-11 IA-OPEN-34 */
static void ia_open__queue_length_above_the_limit__insufficient_resources(void **state)
{
	struct dt_ia probe;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

	(void)state;
	dt_ia_open(&probe);
	const DAT_COUNT max = probe.attr.max_evd_qlen;

	dt_ia_close(&probe);
	assert_true(max > 0);
	if (max == INT32_MAX)
		skip();
	dt_fails_with(try_open(dt_adapter(), max + 1, &async, &ia), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEVD);
	assert_null(ia);
	async = DAT_HANDLE_NULL;
	dt_fails_with(try_open(dt_adapter(), INT32_MAX, &async, &ia), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEVD);
}

/* --- an asynchronous EVD of another instance --- */

/* IA-OPEN-12 IA-OPEN-13 IA-QUERY-01 */
static void ia_open__evd_passed_in__used_whatever_the_length(void **state)
{
	static const DAT_COUNT lengths[] = {0, -1, 5, INT32_MAX};
	struct dt_ia owner;

	(void)state;
	dt_ia_open(&owner);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = owner.async, queried = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;

		dt_ok(try_open(dt_adapter(), lengths[i], &async, &ia));
		assert_ptr_equal(async, owner.async);
		dt_ok(dat_ia_query(ia, &queried, 0, NULL, 0, NULL));
		assert_ptr_equal(queried, owner.async);
		close_ok(ia); /* no EVD of its own */
		dt_ok(dat_ia_query(owner.ia, &queried, 0, NULL, 0, NULL));
		assert_ptr_equal(queried, owner.async);
	}
	dt_ia_close(&owner);
}

/* IA-OPEN-14 IA-OPEN-23 EVD-CREATE-25 CONN-EVT-42 */
static void ia_open__consumers_evd_passed_in__gets_the_events(void **state)
{
	struct dt_ia owner, borrower;
	struct dt_ep ep;
	DAT_EVD_HANDLE mine;

	(void)state;
	dt_ia_open(&owner);
	mine = dt_evd_create(&owner, 8, DAT_EVD_ASYNC_FLAG);
	dt_ia_open(&borrower);
	const DAT_EVD_HANDLE unused = borrower.async;
	struct dt_ia second = {.async = mine};

	dt_ok(try_open(dt_adapter(), 0, &second.async, &second.ia));
	dt_ok(dat_ia_query(second.ia, NULL, DAT_IA_FIELD_ALL, &second.attr, 0, NULL));
	dt_ok(dat_pz_create(second.ia, &second.pz));
	expect_overflow(mine, overflow(&second, &ep));
	dt_stays_empty(owner.async);
	dt_no_event(unused);
	dt_no_event(mine);
	dt_ep_free(&ep);
	dt_ia_close(&second);
	/* Now one of another instance: not there. */
	expect_overflow(borrower.async, overflow(&borrower, &ep));
	dt_stays_empty(mine);
	dt_no_event(owner.async);
	dt_ep_free(&ep);
	dt_ia_close(&borrower);
	dt_ok(dat_evd_free(mine));
	dt_ia_close(&owner);
}

static void check_refused_evd(DAT_EVD_HANDLE passed)
{
	DAT_EVD_HANDLE async = passed;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

	dt_fails_with(try_open(dt_adapter(), 8, &async, &ia), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EVD_ASYNC);
	assert_ptr_equal(async, passed);
	assert_null(ia);
}

/* IA-OPEN-15 IA-OPEN-16 IA-OPEN-18 IA-OPEN-22 IA-OPEN-34 */
static void ia_open__no_asynchronous_evd__invalid_handle(void **state)
{
	struct dt_ia ia, gone;
	uint64_t memory[32] = {0};

	(void)state;
	dt_ia_open(&ia);
	dt_ia_open(&gone);
	const DAT_EVD_HANDLE dead = gone.async;

	dt_ia_close(&gone);
	const DAT_EVD_HANDLE dto = dt_evd_create(&ia, 4, DAT_EVD_DTO_FLAG);
	const DAT_EVD_HANDLE others =
		dt_evd_create(&ia, 4, DAT_EVD_DEFAULT_FLAG & ~DAT_EVD_ASYNC_FLAG);

	check_refused_evd(dead);
	check_refused_evd(ia.pz);
	if (ia.ia != DAT_EVD_ASYNC_EXISTS)
		check_refused_evd(ia.ia);
	check_refused_evd(DAT_EVD_OUT_OF_SCOPE);
	check_refused_evd(memory + 16);
	check_refused_evd((char *)ia.async + 1);
	check_refused_evd(dto);
	check_refused_evd(others);
	dt_ok(dat_evd_free(dto));
	dt_ok(dat_evd_free(others));
	dt_ia_close(&ia);
}

/* Another adapter of the registry that opens, if there is one. */
static bool open_another(struct dt_ia *ia)
{
	static DAT_PROVIDER_INFO info[8];
	DAT_PROVIDER_INFO *list[8];
	DAT_COUNT count = 0;

	for (int i = 0; i < 8; i++)
		list[i] = &info[i];
	if (dat_registry_list_providers(8, &count, list) != DAT_SUCCESS)
		return false;
	for (DAT_COUNT i = 0; i < count; i++) {
		memset(ia, 0, sizeof(*ia));
		if (strcmp(info[i].ia_name, dt_adapter()) != 0 &&
		    try_open(info[i].ia_name, 4, &ia->async, &ia->ia) == DAT_SUCCESS)
			return true;
	}
	return false;
}

/* IA-OPEN-17 IA-OPEN-18 */
static void ia_open__evd_of_another_adapter__invalid_handle(void **state)
{
	struct dt_ia other;

	(void)state;
	if (!open_another(&other))
		skip(); /* this host has one adapter only */
	check_refused_evd(other.async);
	close_ok(other.ia);
}

/* IA-OPEN-19 IA-OPEN-20 IA-OPEN-21 IA-QUERY-02 */
static void ia_open__evd_exists_elsewhere__out_of_scope(void **state)
{
	static const DAT_COUNT lengths[] = {0, -5, 8};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS, queried = DAT_HANDLE_NULL;
		struct dt_ia ia;
		struct dt_ep ep;

		memset(&ia, 0, sizeof(ia));
		dt_ok(try_open(dt_adapter(), lengths[i], &async, &ia.ia));
		assert_ptr_equal(async, DAT_EVD_OUT_OF_SCOPE);
		dt_ok(dat_ia_query(ia.ia, &queried, DAT_IA_FIELD_ALL, &ia.attr, 0, NULL));
		assert_ptr_equal(queried, DAT_EVD_OUT_OF_SCOPE);
		/* An asynchronous event has nowhere to go, and does no harm. */
		dt_ok(dat_pz_create(ia.ia, &ia.pz));
		overflow(&ia, &ep);
		dt_ep_free(&ep);
		dt_ia_close(&ia);
	}
}

/* --- names and pointers --- */

/* IA-OPEN-24 IA-OPEN-29 IA-OPEN-30 IA-OPEN-34 */
static void ia_open__bad_name__refused(void **state)
{
	char name[600];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

	(void)state;
	dt_fails_with(try_open(NULL, 8, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	assert_null(ia);
	memset(name, 'x', sizeof(name));
	name[599] = '\0';
	dt_fails_with(try_open(name, 8, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	name[256] = '\0';
	dt_fails_with(try_open(name, 8, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	name[255] = '\0';
	ia = (DAT_IA_HANDLE)(uintptr_t)99;
	dt_fails_with(try_open(name, 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	assert_null(ia);
	dt_fails_with(try_open("no-such-adapter", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	dt_fails_with(try_open("", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	assert_null(async);
}

/* IA-OPEN-31 IA-OPEN-32 */
static void ia_open__null_pointers__invalid_parameter(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;

	(void)state;
	dt_fails_with(try_open(dt_adapter(), 8, NULL, &ia), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_fails_with(try_open(dt_adapter(), 8, &async, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG4);
}

/* IA-OPEN-39 IA-OPEN-40 IA-OPEN-42 */
static void ia_open__ordering_prefix__optional_and_removed(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;
	DAT_IA_HANDLE ia;
	char name[300];

	(void)state;
	snprintf(name, sizeof(name), "RO_AWARE_%s", dt_adapter());
	dt_ok(try_open(name, 8, &async, &ia));
	dt_ok(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	assert_string_equal(attr.adapter_name, dt_adapter());
	close_ok(ia);
	async = DAT_HANDLE_NULL;
	dt_ok(try_open(dt_adapter(), 8, &async, &ia));
	close_ok(ia);
}

/* --- resources --- */

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

/* IA-OPEN-33 IA-OPEN-34 GEN-20 */
static void ia_open__descriptors_run_out__insufficient_resources(void **state)
{
	struct rlimit limit, few;
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret = DAT_INSUFFICIENT_RESOURCES;
	int failures = 0;

	(void)state;
	/* Whatever stays open after the first use is open then. */
	async = DAT_HANDLE_NULL;
	dt_ok(try_open(dt_adapter(), 8, &async, &ia));
	close_ok(ia);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	const int before = count_descriptors();

	/* One descriptor more each time, until it is enough. */
	for (few = limit; ret != DAT_SUCCESS && failures < 100; failures++) {
		few.rlim_cur = (rlim_t)(before + failures);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		async = DAT_HANDLE_NULL;
		ia = (DAT_IA_HANDLE)(uintptr_t)99;
		ret = try_open(dt_adapter(), 8, &async, &ia);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (ret == DAT_SUCCESS)
			break;
		dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
		assert_null(ia);
		assert_int_equal(count_descriptors(), before);
	}
	dt_ok(ret);
	assert_true(failures > 0);
	close_ok(ia);
	assert_int_equal(count_descriptors(), before);
}

/* IA-OPEN-43 */
static void ia_open__events_never_taken__closes_without_residue(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct dt_ia ia;
		struct dt_ep ep;

		dt_ia_open(&ia);
		overflow(&ia, &ep);
		dt_ep_free(&ep);
		dt_ia_close(&ia);
	}
}

static void *open_and_close(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10; i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;
		DAT_PZ_HANDLE pz;

		conf_try(try_open(dt_adapter(), 8, &async, &ia));
		conf_try(dat_pz_create(ia, &pz));
		conf_try(dat_pz_free(pz));
		conf_try(dat_ia_close(ia, i % 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
	}
	return NULL;
}

/* IA-OPEN-44 IA-CLOSE-25 */
static void ia_open__in_parallel__each_gets_its_own(void **state)
{
	conf_parallel(open_and_close, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__another_instance__little_address_space),
		cmocka_unit_test(ia_open__several_times__distinct_instances),
		cmocka_unit_test(ia_open__one_closed__objects_of_the_other_work),
		cmocka_unit_test(ia_open__null_evd__makes_one),
		cmocka_unit_test(ia_open__evd_it_made__can_be_resized),
		cmocka_unit_test(ia_open__evd_it_made__takes_a_cno),
		cmocka_unit_test(ia_open__queue_length_not_positive__invalid_parameter),
		cmocka_unit_test(ia_open__queue_length_above_the_limit__insufficient_resources),
		cmocka_unit_test(ia_open__evd_passed_in__used_whatever_the_length),
		cmocka_unit_test(ia_open__consumers_evd_passed_in__gets_the_events),
		cmocka_unit_test(ia_open__no_asynchronous_evd__invalid_handle),
		cmocka_unit_test(ia_open__evd_of_another_adapter__invalid_handle),
		cmocka_unit_test(ia_open__evd_exists_elsewhere__out_of_scope),
		cmocka_unit_test(ia_open__bad_name__refused),
		cmocka_unit_test(ia_open__null_pointers__invalid_parameter),
		cmocka_unit_test(ia_open__ordering_prefix__optional_and_removed),
		cmocka_unit_test(ia_open__descriptors_run_out__insufficient_resources),
		cmocka_unit_test(ia_open__events_never_taken__closes_without_residue),
		cmocka_unit_test(ia_open__in_parallel__each_gets_its_own),
	};

	return cmocka_run_group_tests_name("ia open", tests, NULL, NULL);
}
