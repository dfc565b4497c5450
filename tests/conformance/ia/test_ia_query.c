// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_query: the reported fields and values, and the refusals.
 */
#include "conf.h"

#include <sched.h>
#include <stddef.h>
#include <netinet/in.h>

/* --- fields --- */

struct field {
	uint64_t mask;
	size_t offset, size;
};

#define IA(bit, member)                                                                            \
	{                                                                                          \
		DAT_IA_FIELD_IA_##bit, offsetof(DAT_IA_ATTR, member),                              \
			sizeof(((DAT_IA_ATTR *)0)->member)                                         \
	}
#define PROV(bit, member)                                                                          \
	{                                                                                          \
		DAT_PROVIDER_FIELD_##bit, offsetof(DAT_PROVIDER_ATTR, member),                     \
			sizeof(((DAT_PROVIDER_ATTR *)0)->member)                                   \
	}

static const struct field ia_fields[] = {
	IA(ADAPTER_NAME, adapter_name),
	IA(VENDOR_NAME, vendor_name),
	IA(HARDWARE_MAJOR_VERSION, hardware_version_major),
	IA(HARDWARE_MINOR_VERSION, hardware_version_minor),
	IA(FIRMWARE_MAJOR_VERSION, firmware_version_major),
	IA(FIRMWARE_MINOR_VERSION, firmware_version_minor),
	IA(ADDRESS_PTR, ia_address_ptr),
	IA(MAX_EPS, max_eps),
	IA(MAX_DTO_PER_EP, max_dto_per_ep),
	IA(MAX_RDMA_READ_PER_EP_IN, max_rdma_read_per_ep_in),
	IA(MAX_RDMA_READ_PER_EP_OUT, max_rdma_read_per_ep_out),
	IA(MAX_EVDS, max_evds),
	IA(MAX_EVD_QLEN, max_evd_qlen),
	IA(MAX_IOV_SEGMENTS_PER_DTO, max_iov_segments_per_dto),
	IA(MAX_LMRS, max_lmrs),
	IA(MAX_LMR_BLOCK_SIZE, max_lmr_block_size),
	IA(MAX_LMR_VIRTUAL_ADDRESS, max_lmr_virtual_address),
	IA(MAX_PZS, max_pzs),
	IA(MAX_MESSAGE_SIZE, max_message_size),
	IA(MAX_RDMA_SIZE, max_rdma_size),
	IA(MAX_RMRS, max_rmrs),
	IA(MAX_RMR_TARGET_ADDRESS, max_rmr_target_address),
	IA(MAX_SRQS, max_srqs),
	IA(MAX_EP_PER_SRQ, max_ep_per_srq),
	IA(MAX_RECV_PER_SRQ, max_recv_per_srq),
	IA(MAX_IOV_SEGMENTS_PER_RDMA_READ, max_iov_segments_per_rdma_read),
	IA(MAX_IOV_SEGMENTS_PER_RDMA_WRITE, max_iov_segments_per_rdma_write),
	IA(MAX_RDMA_READ_IN, max_rdma_read_in),
	IA(MAX_RDMA_READ_OUT, max_rdma_read_out),
	IA(MAX_RDMA_READ_PER_EP_IN_GUARANTEED, max_rdma_read_per_ep_in_guaranteed),
	IA(MAX_RDMA_READ_PER_EP_OUT_GUARANTEED, max_rdma_read_per_ep_out_guaranteed),
	IA(NUM_TRANSPORT_ATTR, num_transport_attr),
	IA(TRANSPORT_ATTR, transport_attr),
	IA(NUM_VENDOR_ATTR, num_vendor_attr),
	IA(VENDOR_ATTR, vendor_attr),
};

static const struct field provider_fields[] = {
	PROV(PROVIDER_NAME, provider_name),
	PROV(PROVIDER_VERSION_MAJOR, provider_version_major),
	PROV(PROVIDER_VERSION_MINOR, provider_version_minor),
	PROV(DAPL_VERSION_MAJOR, dapl_version_major),
	PROV(DAPL_VERSION_MINOR, dapl_version_minor),
	PROV(LMR_MEM_TYPE_SUPPORTED, lmr_mem_types_supported),
	PROV(IOV_OWNERSHIP, iov_ownership_on_return),
	PROV(DAT_QOS_SUPPORTED, dat_qos_supported),
	PROV(COMPLETION_FLAGS_SUPPORTED, completion_flags_supported),
	PROV(IS_THREAD_SAFE, is_thread_safe),
	PROV(MAX_PRIVATE_DATA_SIZE, max_private_data_size),
	PROV(SUPPORTS_MULTIPATH, supports_multipath),
	PROV(EP_CREATOR, ep_creator),
	PROV(PZ_SUPPORT, pz_support),
	PROV(OPTIMAL_BUFFER_ALIGNMENT, optimal_buffer_alignment),
	PROV(EVD_STREAM_MERGING_SUPPORTED, evd_stream_merging_supported),
	PROV(SRQ_SUPPORTED, srq_supported),
	PROV(SRQ_WATERMARKS_SUPPORTED, srq_watermarks_supported),
	PROV(SRQ_EP_PZ_DIFFERENCE_SUPPORTED, srq_ep_pz_difference_supported),
	PROV(SRQ_INFO_SUPPORTED, srq_info_supported),
	PROV(EP_RECV_INFO_SUPPORTED, ep_recv_info_supported),
	PROV(LMR_SYNC_REQ, lmr_sync_req),
	PROV(DTO_ASYNC_RETURN_GUARANTEED, dto_async_return_guaranteed),
	PROV(RDMA_WRITE_FOR_RDMA_READ_REQ, rdma_write_for_rdma_read_req),
	PROV(NUM_PROVIDER_SPECIFIC_ATTR, num_provider_specific_attr),
	PROV(PROVIDER_SPECIFIC_ATTR, provider_specific_attr),
};

/* A structure with guard bytes around it. */
union guarded {
	struct {
		unsigned char before[64];
		DAT_IA_ATTR attr;
		unsigned char after[64];
	} ia;
	struct {
		unsigned char before[64];
		DAT_PROVIDER_ATTR attr;
		unsigned char after[64];
	} provider;
};

static void check_guards(const unsigned char *before, const unsigned char *after, int poison)
{
	dt_check_bytes(before, 64, (unsigned char)poison);
	dt_check_bytes(after, 64, (unsigned char)poison);
}

/* Text is compared up to its NUL. */
static bool is_same(const struct field *field, const void *a, const void *b)
{
	const char *x = (const char *)a + field->offset;
	const char *y = (const char *)b + field->offset;

	if (field->size == DAT_NAME_MAX_LENGTH)
		return memchr(x, 0, field->size) && strcmp(x, y) == 0;
	return memcmp(x, y, field->size) == 0;
}

static void check_ia_field(struct dt_ia *ia, const struct field *field, uint64_t mask, int poison)
{
	union guarded got;

	memset(&got, poison, sizeof(got));
	dt_ok(dat_ia_query(ia->ia, NULL, mask, &got.ia.attr, 0, NULL));
	check_guards(got.ia.before, got.ia.after, poison);
	assert_true(is_same(field, &got.ia.attr, &ia->attr));
}

static void check_provider_field(struct dt_ia *ia, const struct field *field, uint64_t mask,
				 int poison)
{
	union guarded got;

	memset(&got, poison, sizeof(got));
	dt_ok(dat_ia_query(ia->ia, NULL, 0, NULL, mask, &got.provider.attr));
	check_guards(got.provider.before, got.provider.after, poison);
	assert_true(is_same(field, &got.provider.attr, &ia->provider));
}

/* IA-QUERY-04 IA-QUERY-14 IA-QUERY-15 IA-QUERY-33 IA-QUERY-36 IA-QUERY-38 IA-QUERY-55
 * IA-QUERY-57 GEN-22 */
static void ia_query__each_field__written_and_stable(void **state)
{
	static const int poisons[] = {0x00, 0x5a, 0xff};
	struct dt_ia *ia = *state;

	for (size_t p = 0; p < COUNT_OF(poisons); p++) {
		for (size_t i = 0; i < COUNT_OF(ia_fields); i++) {
			check_ia_field(ia, &ia_fields[i], ia_fields[i].mask, poisons[p]);
			check_ia_field(ia, &ia_fields[i], DAT_IA_FIELD_ALL, poisons[p]);
		}
		for (size_t i = 0; i < COUNT_OF(provider_fields); i++) {
			check_provider_field(ia, &provider_fields[i], provider_fields[i].mask,
					     poisons[p]);
			check_provider_field(ia, &provider_fields[i], DAT_PROVIDER_FIELD_ALL,
					     poisons[p]);
		}
	}
}

/* IA-QUERY-10 IA-QUERY-36 */
static void ia_query__second_instance__same_attributes(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ia second;

	dt_ia_open(&second);
	for (size_t i = 0; i < COUNT_OF(ia_fields); i++) {
		const uint64_t mask = ia_fields[i].mask;

		if (mask & (DAT_IA_FIELD_IA_ADDRESS_PTR | DAT_IA_FIELD_IA_TRANSPORT_ATTR |
			    DAT_IA_FIELD_IA_VENDOR_ATTR))
			continue; /* pointers: each instance may have its own copy */
		assert_true(is_same(&ia_fields[i], &ia->attr, &second.attr));
	}
	assert_memory_equal(ia->attr.ia_address_ptr, second.attr.ia_address_ptr,
			    sizeof(struct sockaddr_in));
	dt_ia_close(&second);
}

/* --- arguments --- */

/* IA-QUERY-01 IA-QUERY-03 IA-QUERY-05 COMPAT-13 GEN-23 */
static void ia_query__nothing_wanted__success(void **state)
{
	struct dt_ia *ia = *state;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	dt_ok(dat_ia_query(ia->ia, NULL, 0, NULL, 0, NULL));
	dt_ok(dat_ia_query(ia->ia, &async, DAT_IA_FIELD_NONE, NULL, DAT_PROVIDER_FIELD_NONE, NULL));
	assert_ptr_equal(async, ia->async);
}

/* IA-QUERY-06 IA-QUERY-07 IA-QUERY-08 GEN-18 GEN-21 */
static void ia_query__mask_or_pointer_wrong__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;

	assert_true(DAT_IA_FIELD_ALL == 0x07ffffffffull);
	assert_true(DAT_PROVIDER_FIELD_ALL == 0x3ffffff);
	for (unsigned bit = 0; bit < 64; bit++) {
		const uint64_t mask = 1ull << bit;

		dt_fails_with(dat_ia_query(ia->ia, NULL, mask, NULL, 0, NULL),
			      DAT_INVALID_PARAMETER,
			      bit < 35 ? DAT_INVALID_ARG4 : DAT_INVALID_ARG3);
		dt_fails_with(dat_ia_query(ia->ia, NULL, 0, NULL, mask, NULL),
			      DAT_INVALID_PARAMETER,
			      bit < 26 ? DAT_INVALID_ARG6 : DAT_INVALID_ARG5);
		if (bit >= 35)
			dt_fails_with(dat_ia_query(ia->ia, NULL, mask | DAT_IA_FIELD_ALL, &ia->attr,
						   0, NULL),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		if (bit >= 26)
			dt_fails_with(dat_ia_query(ia->ia, NULL, 0, NULL,
						   mask | DAT_PROVIDER_FIELD_ALL, &ia->provider),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	}
}

/* IA-QUERY-09 */
static void ia_query__no_instance__invalid_handle(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ia closed;

	dt_ia_open(&closed);
	const DAT_IA_HANDLE bad[] = {DAT_HANDLE_NULL, closed.ia, ia->pz, ia->async,
				     (DAT_IA_HANDLE)(uintptr_t)0x7ffffff1};

	dt_ia_close(&closed);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		dt_fails_with(dat_ia_query(bad[i], NULL, 0, NULL, 0, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
}

/* --- threads --- */

#define QUERIES (DT_SLOW ? 10000 : 200000)

struct queried {
	struct dt_ia ia; /* the answers of a query that was alone */
	_Atomic int number;
	_Atomic int queries;
};

static bool is_same_all(const struct field *fields, size_t count, const void *a, const void *b)
{
	for (size_t i = 0; i < count; i++)
		if (!is_same(&fields[i], a, b))
			return false;
	return true;
}

/* Queries everything; the text says what is wrong in an answer. */
static DAT_RETURN query_all(struct queried *queried, const char **wrong_out)
{
	const struct dt_ia *ia = &queried->ia;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	union guarded got, provider;
	DAT_RETURN ret;

	memset(&got, 0x5a, sizeof(got));
	memset(&provider, 0x5a, sizeof(provider));
	ret = dat_ia_query(ia->ia, &async, DAT_IA_FIELD_ALL, &got.ia.attr, DAT_PROVIDER_FIELD_ALL,
			   &provider.provider.attr);
	atomic_fetch_add(&queried->queries, 1);
	*wrong_out = NULL;
	if (ret != DAT_SUCCESS)
		*wrong_out = dt_strerror(ret);
	else if (async != ia->async)
		*wrong_out = "another asynchronous EVD";
	else if (!is_same_all(ia_fields, COUNT_OF(ia_fields), &got.ia.attr, &ia->attr))
		*wrong_out = "other attributes of the adapter";
	else if (!is_same_all(provider_fields, COUNT_OF(provider_fields), &provider.provider.attr,
			      &ia->provider))
		*wrong_out = "other attributes of the provider";
	return ret;
}

/* Other instances come and go. */
static void *open_others(void)
{
	for (int i = 0; i < 20; i++) {
		DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;

		conf_try(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &evd, &ia));
		conf_try(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	}
	return NULL;
}

/* One thread opens other instances, and the others query. */
static void *query_often(void *arg)
{
	struct queried *queried = arg;
	const char *wrong = NULL;

	if (atomic_fetch_add(&queried->number, 1) == 0)
		return open_others();
	for (int i = 0; i < QUERIES && !wrong; i++)
		(void)query_all(queried, &wrong);
	return (void *)(uintptr_t)wrong;
}

/* IA-QUERY-58 IA-QUERY-10 */
static void ia_query__in_parallel__same_answer(void **state)
{
	const struct dt_ia *ia = *state;
	static struct queried queried;

	memcpy((void *)&queried.ia, ia, sizeof(*ia)); /* a member is declared const */
	conf_parallel(query_often, &queried);
}

/* One thread closes the instance when the others have begun. */
static void *query_until_closed(void *arg)
{
	struct queried *queried = arg;
	const char *wrong;
	DAT_RETURN ret;

	if (atomic_fetch_add(&queried->number, 1) == 0) {
		while (atomic_load(&queried->queries) < CONF_THREADS)
			sched_yield();
		conf_try(dat_ia_close(queried->ia.ia, DAT_CLOSE_ABRUPT_FLAG));
		return NULL;
	}
	do
		ret = query_all(queried, &wrong);
	while (!wrong);
	if (ret == (DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA))
		return NULL;
	return (void *)(uintptr_t)wrong;
}

/* IA-QUERY-58 IA-QUERY-09 GEN-26 */
static void ia_query__closed_meanwhile__right_or_refused(void **state)
{
	static struct queried queried;

	(void)state;
	for (int round = 0; round < 20; round++) {
		dt_ia_open(&queried.ia);
		atomic_store(&queried.number, 0);
		atomic_store(&queried.queries, 0);
		conf_parallel(query_until_closed, &queried);
	}
}

/* --- values --- */

static bool is_text(const char text[DAT_NAME_MAX_LENGTH])
{
	return text[0] && memchr(text, 0, DAT_NAME_MAX_LENGTH);
}

static void check_attributes(DAT_COUNT count, const DAT_NAMED_ATTR *attr)
{
	assert_true(count >= 0);
	assert_true(count > 0 || !attr);
	for (DAT_COUNT i = 0; i < count; i++) {
		assert_true(strlen(attr[i].name) > 0);
		assert_non_null(attr[i].value);
		assert_true(strlen(attr[i].value) < 100000);
	}
}

/* IA-QUERY-12 IA-QUERY-13 IA-QUERY-34 IA-QUERY-35 IA-QUERY-37 IA-QUERY-39 IA-QUERY-54 */
static void ia_query__names_and_versions__as_promised(void **state)
{
	struct dt_ia *ia = *state;

	assert_true(is_text(ia->attr.adapter_name));
	assert_string_equal(ia->attr.adapter_name, dt_adapter());
	assert_true(is_text(ia->attr.vendor_name));
	assert_true(is_text(ia->provider.provider_name));
	assert_int_equal(ia->provider.dapl_version_major, 1);
	assert_int_equal(ia->provider.dapl_version_minor, 2);
	check_attributes(ia->attr.num_transport_attr, ia->attr.transport_attr);
	check_attributes(ia->attr.num_vendor_attr, ia->attr.vendor_attr);
	check_attributes(ia->provider.num_provider_specific_attr,
			 ia->provider.provider_specific_attr);
}

/* IA-QUERY-40 IA-QUERY-47 IA-QUERY-48 IA-QUERY-49 IA-QUERY-50 IA-QUERY-56 EP-RDMAR-32
 * EP-RDMAW-46 PSP-CREATE-13 */
static void ia_query__provider_attributes__as_promised(void **state)
{
	struct dt_ia *ia = *state;
	const DAT_PROVIDER_ATTR *p = &ia->provider;

	assert_int_equal(p->lmr_mem_types_supported, 0x03);
	assert_true(p->supports_multipath == DAT_TRUE || p->supports_multipath == DAT_FALSE);
	assert_int_equal(p->ep_creator, DAT_PSP_CREATES_EP_IFASKED);
	assert_true(p->pz_support == DAT_PZ_UNIQUE || p->pz_support == DAT_PZ_SHAREABLE);
	assert_int_equal(DAT_OPTIMAL_ALIGNMENT, 256);
	assert_true(p->optimal_buffer_alignment >= 1 && p->optimal_buffer_alignment <= 256);
	assert_int_equal(DAT_OPTIMAL_ALIGNMENT % p->optimal_buffer_alignment, 0);
	assert_int_equal(p->lmr_sync_req, DAT_FALSE);
	assert_int_equal(p->rdma_write_for_rdma_read_req, DAT_FALSE);
	assert_int_equal(p->iov_ownership_on_return, DAT_IOV_CONSUMER);
}

/* IA-QUERY-45 */
static void ia_query__is_thread_safe__as_listed(void **state)
{
	static DAT_PROVIDER_INFO info[64];
	struct dt_ia *ia = *state;
	DAT_PROVIDER_INFO *list[64];
	DAT_COUNT count = 0;

	for (int i = 0; i < 64; i++)
		list[i] = &info[i];
	dt_ok(dat_registry_list_providers(64, &count, list));
	for (DAT_COUNT i = 0; i < count; i++) {
		if (strcmp(info[i].ia_name, dt_adapter()) != 0)
			continue;
		assert_int_equal(ia->provider.is_thread_safe, info[i].is_thread_safe);
		return;
	}
	skip(); /* an adapter that opens but is not listed (CONF-43) */
}

/* IA-QUERY-51 IA-QUERY-52 IA-QUERY-53 EVD-CREATE-04 */
static void ia_query__stream_merging__every_pair(void **state)
{
	static const DAT_EVD_FLAGS stream[6] = {DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG,
						DAT_EVD_DTO_FLAG,      DAT_EVD_CONNECTION_FLAG,
						DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG};
	struct dt_ia *ia = *state;

	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 6; j++) {
			const DAT_BOOLEAN(*merging)[6] = ia->provider.evd_stream_merging_supported;

			assert_int_equal(merging[i][j], DAT_TRUE);
			dt_ok(dat_evd_free(
				dt_evd_create(ia, 4, (DAT_EVD_FLAGS)(stream[i] | stream[j]))));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_ia_test(ia_query__each_field__written_and_stable),
		dt_ia_test(ia_query__second_instance__same_attributes),
		dt_ia_test(ia_query__nothing_wanted__success),
		dt_ia_test(ia_query__mask_or_pointer_wrong__invalid_parameter),
		dt_ia_test(ia_query__no_instance__invalid_handle),
		dt_ia_test(ia_query__in_parallel__same_answer),
		cmocka_unit_test(ia_query__closed_meanwhile__right_or_refused),
		dt_ia_test(ia_query__names_and_versions__as_promised),
		dt_ia_test(ia_query__provider_attributes__as_promised),
		dt_ia_test(ia_query__is_thread_safe__as_listed),
		dt_ia_test(ia_query__stream_merging__every_pair),
	};

	return cmocka_run_group_tests_name("ia query", tests, NULL, NULL);
}
