// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles in results: the registry translates those of the provider to those of the consumer.
 */
#include "mock_open.h"

struct mock mock;

/* The entry point that old binaries use. No public header declares it. */
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

static void query_fill(void *param)
{
	/* ia_handle is the first member of every queried block. */
	memcpy(param, &mock.ia, sizeof(mock.ia));
}

#define MUST_TRANSLATE(TYPE, function, all)                                                        \
	do {                                                                                       \
		TYPE param;                                                                        \
		memset(&param, 0, sizeof(param));                                                  \
		must(function(&object, (all), &param) == DAT_SUCCESS);                             \
		must(param.ia_handle == ia);                                                       \
		must(function(&object, 0, NULL) == DAT_SUCCESS);                                   \
	} while (0)

static void queries(void)
{
	mock_open("MOCK_FOREIGN");
	mock.fill = query_fill;
	MUST_TRANSLATE(DAT_CNO_PARAM, dat_cno_query, DAT_CNO_FIELD_ALL);
	MUST_TRANSLATE(DAT_EP_PARAM, dat_ep_query, DAT_EP_FIELD_ALL);
	MUST_TRANSLATE(DAT_EVD_PARAM, dat_evd_query, DAT_EVD_FIELD_ALL);
	MUST_TRANSLATE(DAT_LMR_PARAM, dat_lmr_query, DAT_LMR_FIELD_ALL);
	MUST_TRANSLATE(DAT_RMR_PARAM, dat_rmr_query, DAT_RMR_FIELD_ALL);
	MUST_TRANSLATE(DAT_PSP_PARAM, dat_psp_query, DAT_PSP_FIELD_ALL);
	MUST_TRANSLATE(DAT_RSP_PARAM, dat_rsp_query, DAT_RSP_FIELD_ALL);
	MUST_TRANSLATE(DAT_PZ_PARAM, dat_pz_query, DAT_PZ_FIELD_ALL);
	MUST_TRANSLATE(DAT_SRQ_PARAM, dat_srq_query, DAT_SRQ_FIELD_ALL);
}

/* GEN-24 */
static void every_query__ia_handle__is_the_consumers(void **state)
{
	(void)state;
	child_run(queries);
}

static DAT_EVENT_NUMBER event_number;
static DAT_HANDLE event_handle;

static void event_fill(void *param)
{
	DAT_EVENT *event = param;

	memset(event, 0, sizeof(*event));
	event->event_number = event_number;
	event->event_data.asynch_error_event_data.dat_handle = event_handle;
}

static DAT_HANDLE event_handle_seen(DAT_EVENT_NUMBER number, DAT_HANDLE handle, bool is_wait)
{
	DAT_EVENT event;
	DAT_COUNT more;

	event_number = number;
	event_handle = handle;
	if (is_wait)
		must(dat_evd_wait(evd, 0, 1, &event, &more) == DAT_SUCCESS);
	else
		must(dat_evd_dequeue(evd, &event) == DAT_SUCCESS);
	return event.event_data.asynch_error_event_data.dat_handle;
}

static void async_events(void)
{
	int is_wait;

	mock_open("MOCK_FOREIGN");
	mock.fill = event_fill;
	for (is_wait = 0; is_wait < 2; is_wait++) {
		must(event_handle_seen(DAT_ASYNC_ERROR_IA_CATASTROPHIC, mock.ia, is_wait) == ia);
		must(event_handle_seen(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, mock.ia, is_wait) ==
		     ia);
		must(event_handle_seen(DAT_ASYNC_ERROR_EP_BROKEN, &object, is_wait) == &object);
		/* The data of other events stays unchanged. */
		must(event_handle_seen(DAT_DTO_COMPLETION_EVENT, mock.ia, is_wait) == mock.ia);
		must(event_handle_seen(DAT_SOFTWARE_EVENT, mock.ia, is_wait) == mock.ia);
	}
}

/* GEN-24: The handle in an asynchronous event is the consumer's, too. */
static void async_event__of_an_ia__names_the_consumers_handle(void **state)
{
	(void)state;
	child_run(async_events);
}

static void empty_queue(void)
{
	DAT_EVENT event;

	mock_open("MOCK_FOREIGN");
	mock.result = DAT_CLASS_ERROR | DAT_QUEUE_EMPTY;
	must(dat_evd_dequeue(evd, &event) == DAT_QUEUE_EMPTY);
	mock.result = DAT_QUEUE_EMPTY;
	must(dat_evd_dequeue(evd, &event) == DAT_QUEUE_EMPTY);
	mock.result = DAT_CLASS_ERROR | DAT_INVALID_HANDLE;
	must(dat_evd_dequeue(evd, &event) == (DAT_CLASS_ERROR | DAT_INVALID_HANDLE));
	mock.result = DAT_CLASS_ERROR | DAT_QUEUE_EMPTY;
	must(dat_cno_wait(&object, 0, &evd) == DAT_QUEUE_EMPTY);
}

/* GEN-07 */
static void evd_dequeue__empty_queue__bare_code(void **state)
{
	(void)state;
	child_run(empty_queue);
}

static void old_translation(void)
{
	DAT_IA_HANDLE handle;

	mock_open("MOCK_FOREIGN");
	must(dats_get_ia_handle((unsigned long)(uintptr_t)ia, &handle) == DAT_SUCCESS);
	must(handle == mock.ia);
	must(dats_get_ia_handle(0, &handle) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA));
	must_fail(dats_get_ia_handle(0x10000, &handle), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	must_fail(dats_get_ia_handle((unsigned long)(uintptr_t)ia, NULL), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG2);
}

static void get_ia_handle__consumers_handle__providers_handle(void **state)
{
	(void)state;
	child_run(old_translation);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_query__ia_handle__is_the_consumers),
		cmocka_unit_test(async_event__of_an_ia__names_the_consumers_handle),
		cmocka_unit_test(evd_dequeue__empty_queue__bare_code),
		cmocka_unit_test(get_ia_handle__consumers_handle__providers_handle),
	};

	return cmocka_run_group_tests_name("registry results", tests, NULL, NULL);
}
