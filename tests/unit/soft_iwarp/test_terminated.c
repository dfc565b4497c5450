// SPDX-License-Identifier: BSD-2-Clause
/* A Terminate of the peer: which request gets its status, and which one. */
#include "flow_stage.h"

/* A Terminate of the peer. */
static void terminate_with(iw_error error, const struct iw_offender *offender)
{
	uint8_t payload[IW_TERMINATE_MAX];

	peer_terminate(payload, iw_terminate_put(error, offender, payload));
}

/* What a Terminate says about an FPDU of the library. */
static struct iw_offender offender_of(const struct taken *taken)
{
	struct iw_offender offender = {.ulpdu = (uint16_t)taken->ulpdu};

	memcpy(offender.head, taken->bytes, taken->head);
	if (taken->ddp.opcode == IW_OP_READ_REQUEST) {
		memcpy(offender.request, taken->payload, IW_READ_REQUEST_SIZE);
		offender.has_request = true;
	}
	return offender;
}

/* TERM-10 TERM-16 */
static void terminate__read_that_is_being_filled__gets_the_status(void **state)
{
	struct iw_offender offender;
	struct taken taken;
	uint8_t bytes[100];

	(void)state;
	be_calling_with(0, 4, 4);
	post_read_at(0, 200, 7, 4096, 0);
	post_read_at(1000, 200, 7, 8192, 0);
	get_fpdu(&taken); /* the RTR */
	get_fpdu(&taken);
	offender = offender_of(&taken);
	make_pattern(bytes, sizeof(bytes));
	peer_respond(be_get32(taken.payload), 0, bytes, sizeof(bytes), false);
	terminate_with(IW_ERROR(0, 1, 0), &offender);
	expect_dto(0, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	expect_dto(1000, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* TERM-10 TERM-11 */
static void terminate__one_of_equal_writes__no_false_success(void **state)
{
	struct iw_offender offender;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	for (size_t i = 0; i < 3; i++)
		post_write_at(i * 100, 100, 7, 4096, 0);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	offender = offender_of(&taken);
	terminate_with(IW_ERROR(1, 1, 0), &offender);
	expect_dto(0, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	expect_dto(100, DAT_DTO_ERR_FLUSHED, 0);
	expect_dto(200, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* TERM-10 TERM-11 */
static void terminate__second_of_three_writes__success_error_flush(void **state)
{
	/* each begins where the one before ends, or the reverse */
	static const uint64_t targets[][3] = {{4196, 4096, 3996}, {4096, 4196, 4296}};
	struct iw_offender offender;
	struct taken taken;

	(void)state;
	for (size_t n = 0; n < 6; n++) {
		size_t bad = n / 2;

		be_calling_with(0, 4, 4);
		get_fpdu(&taken);
		for (size_t i = 0; i < 3; i++)
			post_write_at(i * 100, 100, 7, targets[n % 2][i], 0);
		for (size_t i = 0; i <= bad; i++)
			do
				get_fpdu(&taken);
			while (taken.ddp.opcode != IW_OP_WRITE);
		offender = offender_of(&taken);
		terminate_with(IW_ERROR(1, 1, 1), &offender);
		for (size_t i = 0; i < 3; i++)
			expect_dto(i * 100,
				   i < bad    ? DAT_DTO_SUCCESS
				   : i == bad ? DAT_DTO_ERR_REMOTE_ACCESS
					      : DAT_DTO_ERR_FLUSHED,
				   100);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		end_flow();
	}
}

/* TERM-13 */
static void terminate__malformed__first_request_gets_remote_responder(void **state)
{
	static const struct {
		size_t size;
		uint8_t bytes[8];
		uint32_t msn, mo;
		bool is_last;
	} cases[] = {
		{0, {0}, 1, 0, true},				 /* empty */
		{3, {0x11, 0, 0}, 1, 0, true},			 /* too short */
		{5, {0x11, 0, 0, 0, 0}, 1, 0, true},		 /* too long */
		{4, {0x11, 0, 0xc0, 0}, 1, 0, true},		 /* no header behind it */
		{4, {0x11, 0x77, 0, 0}, 1, 0, true},		 /* unknown code, */
		{4, {0x01, 0x05, 0, 0}, 1, 0, true},		 /* the same, */
		{4, {0x23, 0, 0, 0}, 1, 0, true},		 /* type, */
		{4, {0x95, 0, 0, 0}, 1, 0, true},		 /* and layer */
		{4, {0x11, 0, 0, 0}, 2, 0, true},		 /* MSN */
		{4, {0x11, 0, 0, 0}, 1, 4, true},		 /* MO */
		{4, {0x11, 0, 0, 0}, 1, 0, false},		 /* L */
		{8, {0xff, 0xff, 0xff, 0xff, 1, 2}, 1, 0, true}, /* nonsense */
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct iw_ddp ddp = {.opcode = IW_OP_TERMINATE,
				     .queue = IW_QUEUE_TERMINATE,
				     .msn = cases[i].msn,
				     .mo = cases[i].mo,
				     .is_last = cases[i].is_last};

		be_calling_with(0, 4, 4);
		post_read_at(0, 200, 7, 4096, 0);
		post_read_at(1000, 200, 7, 8192, 0);
		put_segment(&ddp, cases[i].bytes, cases[i].size);
		expect_dto(0, DAT_DTO_ERR_REMOTE_RESPONDER, 0);
		expect_dto(1000, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		end_flow();
	}
}

/* TERM-15 TERM-16 TERM-17 TERM-19 TERM-20 TERM-22 TERM-23 TERM-24 TERM-26 TERM-27 TERM-28 TERM-29
 * TERM-30 TERM-31: what the request gets that is named, or the first one */
static void terminate__each_code__its_status(void **state)
{
	enum { NONE, READ_REQUEST, WRITE };
	static const struct {
		iw_error error;
		int named;
		DAT_DTO_COMPLETION_STATUS status;
	} cases[] = {
		{IW_ERROR(0, 0, 0), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(0, 1, 0), READ_REQUEST, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(0, 1, 1), READ_REQUEST, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(0, 1, 2), READ_REQUEST, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(0, 1, 2), WRITE, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(0, 1, 3), READ_REQUEST, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(0, 1, 4), READ_REQUEST, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(0, 1, 0xff), NONE, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(0, 1, 9), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(0, 2, 5), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(0, 2, 6), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(0, 2, 7), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(0, 2, 8), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(0, 2, 9), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(0, 2, 0xff), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 0, 0), WRITE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 0, 0), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 1, 0), WRITE, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(1, 1, 1), WRITE, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(1, 1, 2), WRITE, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(1, 1, 3), WRITE, DAT_DTO_ERR_REMOTE_ACCESS},
		{IW_ERROR(1, 1, 4), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 2, 1), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 2, 2), NONE, DAT_DTO_ERR_RECEIVER_NOT_READY},
		{IW_ERROR(1, 2, 2), READ_REQUEST, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 2, 3), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 2, 4), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 2, 5), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(1, 2, 6), NONE, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IW_ERROR(2, 0, 1), NONE, DAT_DTO_ERR_TRANSPORT},
		{IW_ERROR(2, 0, 2), NONE, DAT_DTO_ERR_TRANSPORT},
		{IW_ERROR(2, 0, 3), NONE, DAT_DTO_ERR_TRANSPORT},
		{IW_ERROR(2, 0, 4), NONE, DAT_DTO_ERR_TRANSPORT},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct iw_offender offender = {.ulpdu = 0};
		struct taken taken;

		be_calling_with(0, 4, 4);
		get_fpdu(&taken);
		if (cases[i].named == WRITE)
			post_write_at(0, 10, 7, 4096, 0);
		else
			post_read_at(0, 10, 7, 4096, 0);
		post_read_at(1000, 200, 7, 8192, 0);
		get_fpdu(&taken);
		if (cases[i].named)
			offender = offender_of(&taken);
		terminate_with(cases[i].error, cases[i].named ? &offender : NULL);
		peer_send("behind", 6); /* TERM-08 */
		expect_dto(0, cases[i].status, 0);
		expect_dto(1000, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		end_flow();
	}
}

/* TERM-06 TERM-08 TERM-12: with nothing outstanding BROKEN alone; no Terminate comes back */
static void terminate__nothing_outstanding__broken_alone(void **state)
{
	(void)state;
	be_called(0);
	terminate_with(IW_ERROR(1, 1, 0), NULL);
	peer_write(flow.rkey, address_of(flow.region), "behind", 6);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_end(flow.fd);
	expect_untouched(flow.region, REGION);
	end_flow();
}

/* TERM-12: the Write that is named has completed; a Send behind it is outstanding no more, a Read
 * is */
static void terminate__names_a_suppressed_write__first_outstanding(void **state)
{
	struct iw_offender offender;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_write_at(0, 10, 7, 4096, DAT_COMPLETION_SUPPRESS_FLAG);
	get_fpdu(&taken);
	offender = offender_of(&taken);
	post_read_at(1000, 200, 7, 8192, 0);
	get_fpdu(&taken);
	terminate_with(IW_ERROR(1, 1, 0), &offender);
	expect_dto(1000, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_flow, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(terminate__read_that_is_being_filled__gets_the_status),
		TEST(terminate__one_of_equal_writes__no_false_success),
		TEST(terminate__second_of_three_writes__success_error_flush),
		TEST(terminate__malformed__first_request_gets_remote_responder),
		TEST(terminate__each_code__its_status),
		TEST(terminate__nothing_outstanding__broken_alone),
		TEST(terminate__names_a_suppressed_write__first_outstanding),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
