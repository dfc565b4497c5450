// SPDX-License-Identifier: BSD-2-Clause
/*
 * The headers in private data, and the ports of a qualifier: what is encoded is decoded, and
 * invalid data is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verbs/wire.h"

#define ROOM 56u

static const struct vrb_wire_request sample = {
	.qual = UINT64_C(0x0123456789abcdef),
	.nonce = 0xdeadbeef,
	.port = 0x1234,
	.read_in = 7,
	.read_out = 9,
};

/* CONN-GEN-02 CONN-GEN-03 CONN-GEN-08: every size, padded as InfiniBand's manager pads */
static void request__each_size__comes_back(void **state)
{
	uint8_t bytes[256];

	(void)state;
	for (unsigned size = 0; size <= VRB_PRIVATE_MAX; size++) {
		struct vrb_wire_request out = sample, in;
		size_t written;

		out.size = (uint8_t)size;
		out.data_size = (uint8_t)size;
		memset(out.data, (int)size + 1, size);
		memset(bytes, 0, sizeof(bytes));
		written = vrb_wire_put_request(&out, bytes);
		assert_int_equal(written, VRB_REQUEST_HEAD + size);
		assert_int_equal(vrb_wire_get_request(bytes, written + 20, 255, &in), 1);
		assert_true(in.qual == out.qual);
		assert_int_equal(in.nonce, out.nonce);
		assert_int_equal(in.port, out.port);
		assert_int_equal(in.read_in, out.read_in);
		assert_int_equal(in.read_out, out.read_out);
		assert_int_equal(in.size, size);
		assert_int_equal(in.data_size, size);
		assert_memory_equal(in.data, out.data, size);
		for (size_t cut = 0; cut < written; cut++)
			assert_int_not_equal(vrb_wire_get_request(bytes, cut, 255, &in), 1);
	}
}

/* The two parts of data that does not fit into one request. */
static void request__in_two_parts__sizes_are_checked(void **state)
{
	struct vrb_wire_request out = sample, in;
	uint8_t bytes[VRB_WIRE_MAX];

	(void)state;
	out.size = 64;
	out.data_size = ROOM - VRB_REQUEST_HEAD;
	out.flags = VRB_WIRE_MORE;
	assert_int_equal(vrb_wire_put_request(&out, bytes), ROOM);
	assert_int_equal(vrb_wire_get_request(bytes, ROOM, ROOM, &in), 1);
	assert_int_equal(in.data_size, ROOM - VRB_REQUEST_HEAD);
	bytes[6] = VRB_WIRE_CONTINUED;
	assert_int_equal(vrb_wire_get_request(bytes, ROOM, ROOM, &in), 1);
	assert_int_equal(in.data_size, 64 - (ROOM - VRB_REQUEST_HEAD));
	bytes[6] = VRB_WIRE_MORE | VRB_WIRE_CONTINUED;
	assert_int_equal(vrb_wire_get_request(bytes, ROOM, ROOM, &in), -1);
	bytes[6] = VRB_WIRE_MORE;
	bytes[7] = 8; /* it fits into one request */
	assert_int_equal(vrb_wire_get_request(bytes, ROOM, ROOM, &in), -1);
	bytes[7] = VRB_PRIVATE_MAX + 1;
	assert_int_equal(vrb_wire_get_request(bytes, ROOM, ROOM, &in), -1);
}

static void answers__come_back__and_others_do_not(void **state)
{
	struct vrb_wire_accept out = {.read_in = 3, .size = 64}, in;
	uint8_t bytes[VRB_WIRE_MAX];
	size_t size;

	(void)state;
	memset(out.data, 5, sizeof(out.data));
	size = vrb_wire_put_accept(&out, bytes);
	assert_int_equal(vrb_wire_get_accept(bytes, size, &in), 1);
	assert_int_equal(in.read_in, 3);
	assert_memory_equal(in.data, out.data, 64);
	assert_int_equal(vrb_wire_get_accept(bytes, size - 1, &in), -1);
	assert_int_equal(vrb_wire_get_reject(bytes, size), 0);
	assert_false(in.wants_confirmation);
	out.wants_confirmation = true;
	assert_int_equal(vrb_wire_put_accept(&out, bytes), size);
	assert_int_equal(vrb_wire_get_accept(bytes, size, &in), 1);
	assert_true(in.wants_confirmation);
	assert_int_equal(in.size, 64);
	bytes[4]++; /* of another version */
	assert_int_equal(vrb_wire_get_accept(bytes, size, &in), -1);
	bytes[0]++; /* of another kind */
	assert_int_equal(vrb_wire_get_accept(bytes, size, &in), 0);
	for (unsigned reason = VRB_REASON_CONSUMER; reason <= VRB_REASON_MORE; reason++) {
		size = vrb_wire_put_reject((enum vrb_reason)reason, bytes);
		assert_int_equal(vrb_wire_get_reject(bytes, size), reason);
		assert_int_equal(vrb_wire_get_reject(bytes, size - 1), 0);
	}
	assert_int_equal(vrb_wire_get_reject(NULL, 0), 0);
}

/* CONN-GEN-08 CONN-GEN-10: the same on every host and in every version */
static void port__of_qualifiers__as_written_down(void **state)
{
	(void)state;
	assert_int_equal(vrb_wire_port(1, 0), 1);
	assert_int_equal(vrb_wire_port(65535, 0), 65535);
	assert_int_equal(vrb_wire_port(65536, 0), 0);
	for (uint64_t qual = 1; qual < 100000; qual += 37) {
		for (unsigned place = 1; place < VRB_PORTS; place++) {
			assert_in_range(vrb_wire_port(qual, place), 10240, 26623);
			for (unsigned other = 1; other < place; other++)
				assert_int_not_equal(vrb_wire_port(qual, place),
						     vrb_wire_port(qual, other));
		}
	}
	assert_int_equal(vrb_wire_port(UINT64_C(0x1122334455667788), 1), 23598);
	assert_int_equal(vrb_wire_port(UINT64_C(0x1122334455667788), 4), 11991);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request__each_size__comes_back),
		cmocka_unit_test(request__in_two_parts__sizes_are_checked),
		cmocka_unit_test(answers__come_back__and_others_do_not),
		cmocka_unit_test(port__of_qualifiers__as_written_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
