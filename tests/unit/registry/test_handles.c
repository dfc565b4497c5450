// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles that the registry refuses before any provider sees them.
 */
#include "mock_open.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "shared/opendat.h"

struct mock mock;

/* The entry point that old binaries use. No public header declares it. */
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

/* One call per type of object, and the code with which it refuses. */
static DAT_RETURN call_ia(DAT_HANDLE handle)
{
	DAT_PZ_HANDLE pz;

	return dat_pz_create(handle, &pz);
}

static DAT_RETURN call_evd(DAT_HANDLE handle)
{
	DAT_EVENT event;

	return dat_evd_dequeue(handle, &event);
}

static DAT_RETURN call_cno_query(DAT_HANDLE handle)
{
	DAT_CNO_PARAM param;

	return dat_cno_query(handle, DAT_CNO_FIELD_ALL, &param);
}

static DAT_RETURN call_get_handle_type(DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;

	return dat_get_handle_type(handle, &type);
}

static DAT_RETURN call_get_context(DAT_HANDLE handle)
{
	DAT_CONTEXT context;

	return dat_get_consumer_context(handle, &context);
}

static DAT_RETURN call_set_context(DAT_HANDLE handle)
{
	DAT_CONTEXT context = {.as_64 = 1};

	return dat_set_consumer_context(handle, context);
}

static DAT_RETURN call_post_send(DAT_HANDLE handle)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	return dat_ep_post_send(handle, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN call_reject(DAT_HANDLE handle)
{
	return dat_cr_reject(handle IN_2(, 0, NULL));
}

static const struct {
	DAT_RETURN (*call)(DAT_HANDLE handle);
	DAT_RETURN subtype;
	bool takes_ia;
} calls[] = {
	{call_ia, DAT_INVALID_HANDLE_IA, true},
	{call_evd, DAT_INVALID_HANDLE1, false},
	{call_cno_query, DAT_INVALID_HANDLE_CNO, false},
	{call_post_send, DAT_INVALID_HANDLE_EP, false},
	{call_get_handle_type, DAT_INVALID_HANDLE1, true},
	{call_get_context, DAT_INVALID_HANDLE1, true},
	{call_set_context, DAT_INVALID_HANDLE1, true},
	{dat_evd_free, DAT_INVALID_HANDLE1, false},
	{dat_ep_free, DAT_INVALID_HANDLE_EP, false},
	{dat_lmr_free, DAT_INVALID_HANDLE_LMR, false},
	{dat_rmr_free, DAT_INVALID_HANDLE_RMR, false},
	{dat_pz_free, DAT_INVALID_HANDLE_PZ, false},
	{dat_psp_free, DAT_INVALID_HANDLE_PSP, false},
	{dat_rsp_free, DAT_INVALID_HANDLE_RSP, false},
	{dat_cno_free, DAT_INVALID_HANDLE_CNO, false},
	{dat_srq_free, DAT_INVALID_HANDLE_SRQ, false},
	{call_reject, DAT_INVALID_HANDLE_CR, false},
};

#define CALL_COUNT (sizeof(calls) / sizeof(calls[0]))

static void must_be_refused_everywhere(DAT_HANDLE handle)
{
	DAT_RETURN ret;
	size_t i;

	mock.calls = 0;
	for (i = 0; i < CALL_COUNT; i++) {
		ret = calls[i].call(handle);
		must(ret == (DAT_CLASS_ERROR | DAT_INVALID_HANDLE | calls[i].subtype));
	}
	must(mock.calls == 0);
}

static void no_handles(void)
{
	/* Before any open, and with a foreign provider loaded. */
	must_be_refused_everywhere(DAT_HANDLE_NULL);
	must_be_refused_everywhere((DAT_HANDLE)1);
	mock_open("MOCK_FOREIGN");
	must_be_refused_everywhere(DAT_HANDLE_NULL);
	must_be_refused_everywhere(DAT_EVD_OUT_OF_SCOPE);
	must_be_refused_everywhere((DAT_HANDLE)((uintptr_t)ia + 1));
	must_be_refused_everywhere((DAT_HANDLE)(uintptr_t)0xffff);
	must_be_refused_everywhere((DAT_HANDLE)(uintptr_t)0xfff8);
	must_be_refused_everywhere((char *)&object + 1);
	must_be_refused_everywhere((char *)&object + 4);
}

/* GEN-14 GEN-33 D2-REG-21 D2-OPEN-17 */
static void every_type__null_small_or_misaligned__invalid_handle(void **state)
{
	(void)state;
	child_run(no_handles);
}

static void ia_as_object(void)
{
	DAT_RETURN ret;
	size_t i;

	mock_open("MOCK_FOREIGN");
	mock.calls = 0;
	for (i = 0; i < CALL_COUNT; i++) {
		if (calls[i].takes_ia)
			continue;
		ret = calls[i].call(ia);
		must(ret == (DAT_CLASS_ERROR | DAT_INVALID_HANDLE | calls[i].subtype));
	}
	/* The provider's own pointer is not a handle of the consumer. */
	must_fail(call_ia(&object), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	must_fail(call_ia(mock.ia), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	must_fail(dat_ia_close(evd, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
	must(mock.calls == 0);
}

/* GEN-15: The part of the registry: the adapter's handle. */
static void every_type__ia_handle__invalid_handle(void **state)
{
	(void)state;
	child_run(ia_as_object);
}

static void garbage_with_our_provider(void)
{
	void *heap = calloc(1, 4096), *nothing;

	mock_open("MOCK_OURS");
	/* A live cell is accepted. An address inside one and an unused cell are not. */
	mock.result = DAT_SUCCESS;
	must(dat_evd_free(evd) == DAT_SUCCESS);
	must_be_refused_everywhere((char *)evd + 8);
	must_be_refused_everywhere((char *)evd + 64);
	must_be_refused_everywhere((char *)evd + 16 * sizeof(struct mock_object));
	/* Memory that looks like an object, memory that cannot even be read, random bits. */
	must_be_refused_everywhere(&object);
	must_be_refused_everywhere(heap);
	nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(nothing != MAP_FAILED);
	must_be_refused_everywhere(nothing);
	must_be_refused_everywhere((DAT_HANDLE)UINT64_C(0xdeadbeefcafef008));
	must_be_refused_everywhere((DAT_HANDLE)UINT64_C(0xfffffffffffffff8));
	free(heap);
}

/* GEN-33 */
static void every_type__any_bits_with_our_provider__invalid_handle(void **state)
{
	(void)state;
	child_run(garbage_with_our_provider);
}

/* The calls whose fast path checks the first arena only. */
static DAT_RETURN call_post_recv(DAT_HANDLE handle)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	return dat_ep_post_recv(handle, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN call_rdma_read(DAT_HANDLE handle)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	return dat_ep_post_rdma_read(handle, 0, NULL, cookie, NULL, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN call_rdma_write(DAT_HANDLE handle)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	return dat_ep_post_rdma_write(handle, 0, NULL, cookie, NULL, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN call_srq_post(DAT_HANDLE handle)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	return dat_srq_post_recv(handle, 0, NULL, cookie);
}

static const struct {
	DAT_RETURN (*call)(DAT_HANDLE handle);
	size_t slot;
} fast_calls[] = {
	{call_evd, offsetof(DAT_PROVIDER, evd_dequeue_func)},
	{call_post_send, offsetof(DAT_PROVIDER, ep_post_send_func)},
	{call_post_recv, offsetof(DAT_PROVIDER, ep_post_recv_func)},
	{call_rdma_read, offsetof(DAT_PROVIDER, ep_post_rdma_read_func)},
	{call_rdma_write, offsetof(DAT_PROVIDER, ep_post_rdma_write_func)},
	{call_srq_post, offsetof(DAT_PROVIDER, srq_post_recv_func)},
};

#define FAST_COUNT (sizeof(fast_calls) / sizeof(fast_calls[0]))

static void must_arrive(DAT_HANDLE handle)
{
	size_t i;

	for (i = 0; i < FAST_COUNT; i++) {
		mock.calls = 0;
		mock.call.slot = 0;
		must(fast_calls[i].call(handle) == DAT_SUCCESS);
		must(mock.calls == 1);
		must(mock.call.slot == fast_calls[i].slot);
		must(memcmp(mock.call.args, &handle, sizeof(handle)) == 0);
	}
}

static void must_be_refused(DAT_HANDLE handle)
{
	size_t i;

	mock.calls = 0;
	for (i = 0; i < FAST_COUNT; i++) {
		DAT_RETURN ret = fast_calls[i].call(handle);

		must(DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE);
	}
	must(mock.calls == 0);
}

/* The handle of a cell, and the values around it. */
static void check_around(DAT_EVD_HANDLE cell)
{
	const size_t size = sizeof(struct mock_object);

	must_arrive(cell);
	must_be_refused((char *)cell + 1);
	must_be_refused((char *)cell + 8);
	must_be_refused((char *)cell + size / 2);
	must_be_refused((char *)cell + size - 8);
	must_be_refused((char *)cell + 16 * size); /* never used */
	must_be_refused((char *)cell - 100 * size);
	must_be_refused((char *)cell + 100 * size);
	must_be_refused(DAT_HANDLE_NULL);
}

/* The cells before and after the arena, which are mapped. */
static void check_bounds(const char *library)
{
	const struct opendat_handle_arena *arena =
		dlsym(dlopen(library, RTLD_LAZY | RTLD_NOLOAD), OPENDAT_HANDLE_ARENA_SYMBOL);

	must(arena && arena->base);
	must_be_refused((DAT_HANDLE)(arena->base - arena->cell_size));
	must_be_refused((DAT_HANDLE)(arena->base + arena->size));
	must_be_refused((DAT_HANDLE)(arena->base + arena->size + arena->cell_size));
}

static void two_libraries(void)
{
	DAT_EVD_HANDLE first = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
	char text[8192];

	snprintf(text, sizeof(text),
		 "one " U "2 nonthreadsafe default %s mock.1 \"\" \"\"\n"
		 "two " U "2 nonthreadsafe default %s mock.1 \"\" \"\"\n",
		 library_get("MOCK_OURS"), library_get("MOCK_OURTWO"));
	conf_set(text);
	mock.result = DAT_SUCCESS;
	must(dat_ia_open((DAT_NAME_PTR) "one", 8, &first, &ia) == DAT_SUCCESS);
	must(dat_ia_open((DAT_NAME_PTR) "two", 8, &second, &ia) == DAT_SUCCESS);
	/* the library opened last is checked first */
	check_around(second);
	check_around(first);
	check_around(second);
	check_bounds(library_get("MOCK_OURS"));
	check_bounds(library_get("MOCK_OURTWO"));
}

/* GEN-14 GEN-33: Both arenas are checked, in either order. */
static void fast_calls__two_libraries_of_ours__handles_of_both(void **state)
{
	(void)state;
	child_run(two_libraries);
}

static void handles_after_close(void)
{
	DAT_EVD_HANDLE first_evd;
	DAT_IA_HANDLE first_ia;

	mock_open("MOCK_FOREIGN");
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
	/* It was the last instance: the library of the table is unmapped. */
	must_be_refused_everywhere(evd);
	must_be_refused_everywhere(ia);
	mock_open("MOCK_FOREIGN");
	first_evd = evd;
	first_ia = ia;
	must(first_ia != DAT_HANDLE_NULL && first_evd != DAT_HANDLE_NULL);
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
	must_fail(dat_ia_close(first_ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
}

/* COMPAT-18 */
static void every_type__after_the_last_close__invalid_handle(void **state)
{
	(void)state;
	child_run(handles_after_close);
}

static void handles_after_close_ours(void)
{
	DAT_EVD_HANDLE stale;

	mock_open("MOCK_OURS");
	stale = mock.ia;
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOCF") == 0);
	/* The cell is free and still mapped. */
	must_be_refused_everywhere(stale);
}

/* IA-CLOSE-21: libraries of OpenDAT stay mapped, and their stale handles are refused. */
static void ia_close__last_instance_of_ours__library_stays(void **state)
{
	(void)state;
	child_run(handles_after_close_ours);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type__null_small_or_misaligned__invalid_handle),
		cmocka_unit_test(every_type__ia_handle__invalid_handle),
		cmocka_unit_test(every_type__any_bits_with_our_provider__invalid_handle),
		cmocka_unit_test(fast_calls__two_libraries_of_ours__handles_of_both),
		cmocka_unit_test(every_type__after_the_last_close__invalid_handle),
		cmocka_unit_test(ia_close__last_instance_of_ours__library_stays),
	};

	return cmocka_run_group_tests_name("registry handles", tests, NULL, NULL);
}
