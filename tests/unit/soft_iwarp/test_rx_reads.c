// SPDX-License-Identifier: BSD-2-Clause
/* Reads of the peer and answers to ours, and keys that die. */
#include "flow_stage.h"

/* --- the answers to Reads --- */

/* RDMAP-22 RDMAP-23 RDMAP-30 DDP-09 DDP-10: in order, each whole, with what was written before */
static void read_requests__sixteen_sizes_at_once__answered_in_order(void **state)
{
	static const uint32_t sizes[] = {0, 1, 3, 4, 100, 8192, 70000, 1, 0};
	static uint8_t bytes[60000];
	struct taken taken;

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_called_with(has_crc ? FLAG_C : 0, 4, 9);
		make_pattern(bytes, sizeof(bytes));
		peer_write(flow.rkey, address_of(flow.region), bytes, sizeof(bytes));
		for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
			const struct iw_read_request request = {
				.sink_stag = 1000 + i,
				.sink_offset = UINT64_MAX - 100 * i,
				.size = sizes[i],
				.source_stag = sizes[i] ? flow.rkey : 77,
				.source_offset = address_of(flow.region)};

			peer_read(&request);
		}
		for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
			uint64_t offset = 0;

			do {
				get_fpdu(&taken);
				assert_int_equal(taken.ddp.opcode, IW_OP_READ_RESPONSE);
				assert_int_equal(taken.ddp.stag, 1000 + i);
				assert_true(taken.ddp.offset == UINT64_MAX - 100 * i + offset);
				assert_memory_equal(taken.payload, flow.region + offset,
						    taken.size);
				offset += taken.size;
			} while (!taken.ddp.is_last);
			assert_int_equal(offset, sizes[i]);
		}
		hang_up();
	}
}

/* --- Responses to our Reads --- */

/* RDMAP-18 RDMAP-24 TERM-25: only exactly where the oldest Read stands */
static void response__anything_but_the_next_bytes__refused(void **state)
{
	static const struct {
		uint32_t stag; /* added to that of the first Read */
		uint64_t offset;
		uint32_t size;
		bool is_last;
		iw_error error;
	} cases[] = {
		{1, 0, 10, false, IW_ERROR(1, 1, 0)},	     /* no Read's */
		{1u << 18, 0, 10, false, IW_ERROR(1, 1, 0)}, /* the second one's */
		{0, 1, 10, false, IW_ERROR(1, 1, 1)},	     /* a gap */
		{0, UINT64_MAX, 10, false, IW_ERROR(1, 1, 1)},
		{0, 0, 101, true, IW_ERROR(1, 1, 1)}, /* excess */
		{0, 0, 9000, true, IW_ERROR(1, 1, 1)},
		{0, 0, 100, false, IW_ERROR(1, 1, 1)}, /* no L with the last byte */
		{0, 0, 99, true, IW_ERROR(1, 1, 1)},   /* an early L */
		{0, 0, 0, true, IW_ERROR(1, 1, 1)},
	};
	static uint8_t bytes[9000];
	struct taken taken;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct iw_read_request request;

		be_calling_with(0, 4, 4);
		get_fpdu(&taken);
		post_read_at(0, 100, 7, 0, 0);
		post_read_at(1000, 100, 7, 0, 0);
		request = get_read_request();
		assert_int_equal(request.size, 100);
		peer_respond(request.sink_stag + cases[i].stag, cases[i].offset, bytes,
			     cases[i].size, cases[i].is_last);
		expect_dto(0, DAT_DTO_ERR_BAD_RESPONSE, 0);
		expect_dto(1000, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		get_read_request();
		expect_terminate(cases[i].error, NULL);
		expect_untouched(flow.region, REGION);
		end_flow();
	}
}

/* RDMAP-24: no Read in flight; after the last byte of one */
static void response__no_read_in_flight__refused(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_read_at(0, 4, 7, 0, 0);
	request = get_read_request();
	peer_respond(request.sink_stag, 0, "abcd", 4, true);
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	assert_memory_equal(flow.region, "abcd", 4);
	fill_memory();
	peer_respond(request.sink_stag, 0, "abcd", 4, true);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 1, 0), NULL);
	expect_untouched(flow.region, REGION);
	end_flow();
}

/* RDMAP-17 EP-RDMAR-32: the sink is no target of a Write */
static void read__peer_writes_to_its_sink__refused(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_read_at(0, 100, 7, 0, 0);
	request = get_read_request();
	assert_int_not_equal(request.sink_stag, flow.rkey);
	/* no key has the index 0 */
	assert_int_equal(request.sink_stag & 0x3ffff, 0);
	peer_write(request.sink_stag, request.sink_offset, "abcd", 4);
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 1, 0), NULL);
	expect_untouched(flow.region, REGION);
	end_flow();
}

/* --- Send with Invalidate --- */

static void send_invalidate(uint32_t stag, uint8_t opcode)
{
	struct iw_ddp ddp = send_header(0, true);

	ddp.opcode = opcode;
	ddp.invalidate = stag;
	put_segment(&ddp, "gone", 4);
}

/* RDMAP-13 */
static void invalidate__key_of_a_region__later_write_refused(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = flow.region};
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		be_called(0);
		ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, stage.pz,
				   DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &rkey, NULL, NULL));
		post_recv_at(0, 4);
		send_invalidate(rkey, i ? IW_OP_SEND_BOTH : IW_OP_SEND_INVALIDATE);
		expect_dto(0, DAT_DTO_SUCCESS, 4);
		fill_memory();
		peer_write(rkey, address_of(flow.region), "abcd", 4);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(1, 1, 0), NULL);
		expect_untouched(flow.region, REGION);
		end_flow();
		ok(core_lmr_free(lmr));
	}
}

/* RDMAP-14 TERM-18 */
static void invalidate__key_that_cannot_be__receive_fails(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = flow.region};
	DAT_RMR_CONTEXT keys[3] = {0, 0x3ffff, 0};
	DAT_LMR_CONTEXT lkey;
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;

	(void)state;
	ok(core_pz_create(stage.ia, &pz));
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &keys[2], NULL, NULL));
	for (unsigned i = 0; i < COUNT_OF(keys); i++) {
		be_called(0);
		post_recv_at(0, 4);
		send_invalidate(keys[i], IW_OP_SEND_INVALIDATE);
		expect_dto(0, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(0, 2, 9), NULL);
		end_flow();
	}
}

/* --- memory that is freed --- */

/* DDP-26 LMR-FREE-07: the region is freed while a large Write is placed, and between two segments
 */
static void write__region_freed_in_the_middle__nothing_more_is_placed(void **state)
{
	static const uint8_t zeros[20000];

	(void)state;
	for (unsigned has_crc = 0; has_crc < 2; has_crc++) {
		for (size_t part = 0; part < 2; part++) {
			struct iw_ddp ddp = {.is_tagged = true, .opcode = IW_OP_WRITE};
			DAT_REGION_DESCRIPTION region = {.for_va = flow.region};
			DAT_LMR_CONTEXT lkey;
			DAT_RMR_CONTEXT key;
			DAT_LMR_HANDLE lmr;
			struct fpdu fpdu;
			size_t cut;

			be_called(has_crc ? FLAG_C : 0);
			ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, stage.pz,
					   DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &key, NULL, NULL));
			ddp.stag = key;
			ddp.offset = address_of(flow.region);
			make_fpdu(&fpdu, &ddp, zeros, sizeof(zeros));
			cut = part ? 10000 : fpdu.size;
			put(flow.fd, fpdu.bytes, cut);
			expect_served();
			ok(core_lmr_free(lmr));
			fill_memory();
			if (!part) {
				ddp.offset += sizeof(zeros);
				make_fpdu(&fpdu, &ddp, zeros, sizeof(zeros));
				cut = 0;
			}
			put(flow.fd, fpdu.bytes + cut, fpdu.size - cut);
			expect(DAT_CONNECTION_EVENT_BROKEN);
			expect_terminate(IW_ERROR(1, 1, 0), NULL);
			expect_untouched(flow.region, REGION);
			end_flow();
		}
	}
}

/* TERM-25 DTO-96: the sink of a Read is freed while its Response comes */
static void response__sink_freed_in_the_middle__local_protection(void **state)
{
	struct iw_read_request request;
	DAT_DTO_COOKIE cookie = {.as_64 = 0};
	DAT_RMR_TRIPLET remote = {.rmr_context = 7, .segment_length = 100};
	DAT_REGION_DESCRIPTION region = {.for_va = flow.region};
	DAT_LMR_TRIPLET segment = segment_at(0, 100);
	struct taken taken;
	DAT_LMR_HANDLE lmr;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &segment.lmr_context, NULL, NULL, NULL));
	ok(core_ep_post_rdma_read(flow.ep, 1, &segment, cookie, &remote, 0));
	request = get_read_request();
	peer_respond(request.sink_stag, 0, "0123456789", 10, false);
	expect_served();
	ok(core_lmr_free(lmr));
	fill_memory();
	peer_respond(request.sink_stag, 10, "0123456789", 10, false);
	expect_dto(0, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 1, 0), NULL);
	expect_untouched(flow.region, REGION);
	end_flow();
}

/* A second key of the region, or one of other memory. */
static DAT_LMR_HANDLE register_at(void *at, size_t size, DAT_RMR_CONTEXT *key)
{
	DAT_REGION_DESCRIPTION region = {.for_va = at};
	DAT_LMR_CONTEXT lkey;
	DAT_LMR_HANDLE lmr;

	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, size, stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, key, NULL, NULL));
	return lmr;
}

/* The peer reads so many bytes. */
static void read_all_of(DAT_RMR_CONTEXT key, const void *at, uint32_t size)
{
	const struct iw_read_request request = {
		.sink_stag = 9, .size = size, .source_stag = key, .source_offset = address_of(at)};

	peer_read(&request);
}

#define READS 4u

/* RDMAP-20 LMR-FREE-07 DTO-98: the region is freed while the peer reads it; TCP has taken a part */
static void read__region_freed_in_the_middle__nothing_more_is_read(void **state)
{
	const int small = 8192;
	struct taken taken;
	DAT_RMR_CONTEXT key;
	DAT_LMR_HANDLE lmr = register_at(flow.region, REGION, &key);

	(void)state;
	be_called_with(0, 4, READS + 1);
	make_pattern(flow.region, REGION);
	/* less than the region fits into the buffers of both ends */
	assert_int_equal(setsockopt(flow.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(setsockopt(fd_of_flow(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	for (unsigned i = 0; i < READS; i++)
		read_all_of(key, flow.region, REGION);
	expect_served();
	ok(core_lmr_free(lmr));
	memset(flow.region, 0xee, REGION);
	for (get_fpdu(&taken); taken.ddp.opcode == IW_OP_READ_RESPONSE; get_fpdu(&taken))
		for (size_t i = 0; i < taken.size; i++)
			assert_int_equal(taken.payload[i], pattern(taken.ddp.offset + i));
	assert_int_equal(taken.ddp.opcode, IW_OP_TERMINATE);
	assert_int_equal(be_get16(taken.payload), IW_ERROR(0, 1, 0));
	expect_end(flow.fd);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	fill_memory();
	end_flow();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_flow, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(read_requests__sixteen_sizes_at_once__answered_in_order),
		TEST(response__anything_but_the_next_bytes__refused),
		TEST(response__no_read_in_flight__refused),
		TEST(read__peer_writes_to_its_sink__refused),
		TEST(invalidate__key_of_a_region__later_write_refused),
		TEST(invalidate__key_that_cannot_be__receive_fails),
		TEST(write__region_freed_in_the_middle__nothing_more_is_placed),
		TEST(response__sink_freed_in_the_middle__local_protection),
		TEST(read__region_freed_in_the_middle__nothing_more_is_read),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
