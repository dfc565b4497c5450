// SPDX-License-Identifier: BSD-2-Clause
/* Names of events, statuses and states (dat/opendat.h), an extension. */
#include "dt.h"

#include <dat/opendat.h>

#define NAME_IS(call, value) assert_string_equal(call(value), #value)

static void names__events__those_of_the_header(void **state)
{
	(void)state;
	NAME_IS(dat_opendat_event_name, DAT_DTO_COMPLETION_EVENT);
	NAME_IS(dat_opendat_event_name, DAT_RMR_BIND_COMPLETION_EVENT);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_REQUEST_EVENT);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_ESTABLISHED);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_PEER_REJECTED);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_DISCONNECTED);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_BROKEN);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_TIMED_OUT);
	NAME_IS(dat_opendat_event_name, DAT_CONNECTION_EVENT_UNREACHABLE);
	NAME_IS(dat_opendat_event_name, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	NAME_IS(dat_opendat_event_name, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	NAME_IS(dat_opendat_event_name, DAT_ASYNC_ERROR_EP_BROKEN);
	NAME_IS(dat_opendat_event_name, DAT_ASYNC_ERROR_TIMED_OUT);
	NAME_IS(dat_opendat_event_name, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	NAME_IS(dat_opendat_event_name, DAT_SOFTWARE_EVENT);
	assert_string_equal(dat_opendat_event_name((DAT_EVENT_NUMBER)0), "unknown");
	assert_string_equal(dat_opendat_event_name((DAT_EVENT_NUMBER)0x4009), "unknown");
}

static void names__statuses__those_of_the_header(void **state)
{
	(void)state;
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_SUCCESS);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_FLUSHED);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_LOCAL_LENGTH);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_LOCAL_EP);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_LOCAL_PROTECTION);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_BAD_RESPONSE);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_REMOTE_ACCESS);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_REMOTE_RESPONDER);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_TRANSPORT);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_RECEIVER_NOT_READY);
	NAME_IS(dat_opendat_dto_status_name, DAT_DTO_ERR_PARTIAL_PACKET);
	NAME_IS(dat_opendat_dto_status_name, DAT_RMR_OPERATION_FAILED);
	assert_string_equal(dat_opendat_dto_status_name((DAT_DTO_COMPLETION_STATUS)12), "unknown");
	assert_string_equal(dat_opendat_dto_status_name((DAT_DTO_COMPLETION_STATUS)-1), "unknown");
}

static void names__states__those_of_the_header(void **state)
{
	(void)state;
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_UNCONNECTED);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_RESERVED);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_CONNECTED);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_DISCONNECT_PENDING);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_DISCONNECTED);
	NAME_IS(dat_opendat_ep_state_name, DAT_EP_STATE_COMPLETION_PENDING);
	assert_string_equal(dat_opendat_ep_state_name((DAT_EP_STATE)99), "unknown");
	NAME_IS(dat_opendat_srq_state_name, DAT_SRQ_STATE_OPERATIONAL);
	NAME_IS(dat_opendat_srq_state_name, DAT_SRQ_STATE_ERROR);
	assert_string_equal(dat_opendat_srq_state_name((DAT_SRQ_STATE)2), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names__events__those_of_the_header),
		cmocka_unit_test(names__statuses__those_of_the_header),
		cmocka_unit_test(names__states__those_of_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
