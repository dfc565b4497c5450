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

#include "shared/cm.h"

#define ROOM 56u

static const struct cm_request sample = {
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
	for (unsigned size = 0; size <= CM_PRIVATE_MAX; size++) {
		struct cm_request out = sample, in;
		size_t written;

		out.size = (uint8_t)size;
		out.data_size = (uint8_t)size;
		memset(out.data, (int)size + 1, size);
		memset(bytes, 0, sizeof(bytes));
		written = cm_put_request(&out, bytes);
		assert_int_equal(written, CM_REQUEST_HEAD + size);
		assert_int_equal(cm_get_request(bytes, written + 20, 255, &in), 1);
		assert_true(in.qual == out.qual);
		assert_int_equal(in.nonce, out.nonce);
		assert_int_equal(in.port, out.port);
		assert_int_equal(in.read_in, out.read_in);
		assert_int_equal(in.read_out, out.read_out);
		assert_int_equal(in.size, size);
		assert_int_equal(in.data_size, size);
		assert_memory_equal(in.data, out.data, size);
		for (size_t cut = 0; cut < written; cut++)
			assert_int_not_equal(cm_get_request(bytes, cut, 255, &in), 1);
	}
}

/* IWCM-10 IWCM-11: byte by byte as the table says, with the largest values */
static void request__known_values__as_written_down(void **state)
{
	static const uint8_t expected[] = {
		0x6f, 0x44, 0x41, 0x54, 1,    1,    8,	  2,	0x01, 0x23, 0x45, 0x67, 0x89,
		0xab, 0xcd, 0xef, 0xde, 0xad, 0xbe, 0xef, 0x12, 0x34, 7,    9,	  'h',	'i',
	};
	struct cm_request out = sample;
	uint8_t bytes[CM_MAX];

	(void)state;
	out.flags = CM_COUNTS;
	out.size = out.data_size = 2;
	memcpy(out.data, "hi", 2);
	assert_int_equal(cm_put_request(&out, bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

/* IWCM-14: flags that the receiver does not know change nothing */
static void request__unknown_flags__ignored(void **state)
{
	struct cm_request out = sample, in;
	uint8_t bytes[CM_MAX];

	(void)state;
	for (unsigned flags = 0; flags < 256; flags += 4) {
		out.flags = (uint8_t)flags;
		out.size = out.data_size = 3;
		assert_int_equal(cm_put_request(&out, bytes), CM_REQUEST_HEAD + 3);
		assert_int_equal(cm_get_request(bytes, CM_REQUEST_HEAD + 3, ROOM, &in), 1);
		assert_int_equal(in.flags, flags);
		assert_int_equal(in.data_size, 3);
	}
}

/* The two parts of data that does not fit into one request. */
static void request__in_two_parts__sizes_are_checked(void **state)
{
	struct cm_request out = sample, in;
	uint8_t bytes[CM_MAX];

	(void)state;
	out.size = 64;
	out.data_size = ROOM - CM_REQUEST_HEAD;
	out.flags = CM_MORE;
	assert_int_equal(cm_put_request(&out, bytes), ROOM);
	assert_int_equal(cm_get_request(bytes, ROOM, ROOM, &in), 1);
	assert_int_equal(in.data_size, ROOM - CM_REQUEST_HEAD);
	bytes[6] = CM_CONTINUED;
	assert_int_equal(cm_get_request(bytes, ROOM, ROOM, &in), 1);
	assert_int_equal(in.data_size, 64 - (ROOM - CM_REQUEST_HEAD));
	bytes[6] = CM_MORE | CM_CONTINUED;
	assert_int_equal(cm_get_request(bytes, ROOM, ROOM, &in), -1);
	bytes[6] = CM_MORE | CM_CONTINUED | CM_COUNTS;
	assert_int_equal(cm_get_request(bytes, ROOM, ROOM, &in), -1);
	bytes[6] = CM_MORE;
	bytes[7] = 8; /* it fits into one request */
	assert_int_equal(cm_get_request(bytes, ROOM, ROOM, &in), -1);
	bytes[7] = CM_PRIVATE_MAX + 1;
	assert_int_equal(cm_get_request(bytes, ROOM, ROOM, &in), -1);
}

/* IWCM-13 IWCM-14: the flags follow the data, 0 if they are not there; what follows is ignored */
static void accept__flags__behind_the_data(void **state)
{
	static const uint8_t expected[] = {0x6f, 0x44, 0x41, 0x54, 1, 2, 3, 2, 'h', 'i', 8};
	struct cm_accept out = {.read_in = 3, .size = 2, .flags = CM_COUNTS}, in;
	uint8_t bytes[CM_MAX];

	(void)state;
	memcpy(out.data, "hi", 2);
	memset(bytes, 0xee, sizeof(bytes));
	assert_int_equal(cm_put_accept(&out, bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	for (size_t size = sizeof(expected); size <= sizeof(bytes); size++) {
		assert_int_equal(cm_get_accept(bytes, size, &in), 1);
		assert_int_equal(in.flags, CM_COUNTS);
		assert_int_equal(in.size, 2);
	}
	assert_int_equal(cm_get_accept(bytes, sizeof(expected) - 1, &in), 1);
	assert_int_equal(in.flags, 0);
	out.flags = 0;
	assert_int_equal(cm_put_accept(&out, bytes), sizeof(expected) - 1);
}

/* The longest accept fits. */
static void accept__longest__fits(void **state)
{
	struct cm_accept out = {.size = CM_PRIVATE_MAX, .flags = CM_COUNTS}, in;
	uint8_t bytes[CM_MAX];
	size_t size;

	(void)state;
	size = cm_put_accept(&out, bytes);
	assert_true(size <= CM_MAX);
	assert_int_equal(cm_get_accept(bytes, size, &in), 1);
	assert_int_equal(in.flags, CM_COUNTS);
	assert_int_equal(in.size, CM_PRIVATE_MAX);
}

/* IWCM-12: byte by byte */
static void answers__known_values__as_written_down(void **state)
{
	static const uint8_t confirm[] = {0x6f, 0x44, 0x41, 0x54, 1, 4, 16, 1, 'x'};
	static const uint8_t reject[] = {0x6f, 0x44, 0x41, 0x54, 1, 3, 3, 0};
	struct cm_accept accept = {.wants_confirmation = true, .read_in = 16, .size = 1};
	uint8_t bytes[CM_MAX];

	(void)state;
	accept.data[0] = 'x';
	assert_int_equal(cm_put_accept(&accept, bytes), sizeof(confirm));
	assert_memory_equal(bytes, confirm, sizeof(confirm));
	assert_int_equal(cm_put_reject(CM_REASON_NOT_HERE, NULL, 0, bytes), sizeof(reject));
	assert_memory_equal(bytes, reject, sizeof(reject));
}

/* IWCM-13: another version or type, a size above what came or above the most there is */
static void request__that_makes_no_sense__refused(void **state)
{
	struct cm_request request = sample, in;
	uint8_t bytes[CM_MAX + 1];
	size_t size;

	(void)state;
	request.size = request.data_size = 8;
	size = cm_put_request(&request, bytes);
	for (unsigned value = 0; value < 256; value++) {
		bytes[4] = (uint8_t)value;
		assert_int_equal(cm_get_request(bytes, size, 255, &in), value == 1 ? 1 : -1);
		bytes[4] = 1;
		bytes[5] = (uint8_t)value;
		assert_int_equal(cm_get_request(bytes, size, 255, &in), value == 1 ? 1 : -1);
		bytes[5] = 1;
		bytes[7] = (uint8_t)value;
		assert_int_equal(cm_get_request(bytes, size, 255, &in), value <= 8 ? 1 : -1);
	}
	bytes[7] = CM_PRIVATE_MAX + 1;
	assert_int_equal(cm_get_request(bytes, sizeof(bytes), 255, &in), -1);
}

/* IWCM-13 */
static void accept__that_makes_no_sense__refused(void **state)
{
	struct cm_accept accept = {.size = 8}, in;
	uint8_t bytes[CM_MAX + 1];
	size_t size;

	(void)state;
	size = cm_put_accept(&accept, bytes);
	for (unsigned value = 0; value < 256; value++) {
		bool is_accept = value == 2 || value == 4;

		bytes[5] = (uint8_t)value;
		assert_int_equal(cm_get_accept(bytes, size, &in), is_accept ? 1 : -1);
		bytes[5] = 2;
		bytes[7] = (uint8_t)value;
		assert_int_equal(cm_get_accept(bytes, size, &in), value <= 8 ? 1 : -1);
	}
	bytes[7] = CM_PRIVATE_MAX + 1;
	assert_int_equal(cm_get_accept(bytes, sizeof(bytes), &in), -1);
}

/* IWCM-12 IWCM-13 */
static void answers__come_back__and_others_do_not(void **state)
{
	struct cm_accept out = {.read_in = 3, .size = 64}, in;
	uint8_t bytes[CM_MAX];
	size_t size;

	(void)state;
	memset(out.data, 5, sizeof(out.data));
	size = cm_put_accept(&out, bytes);
	assert_int_equal(cm_get_accept(bytes, size, &in), 1);
	assert_int_equal(in.read_in, 3);
	assert_memory_equal(in.data, out.data, 64);
	assert_int_equal(cm_get_accept(bytes, size - 1, &in), -1);
	assert_int_equal(cm_get_reject(bytes, size), 0);
	assert_false(in.wants_confirmation);
	out.wants_confirmation = true;
	assert_int_equal(cm_put_accept(&out, bytes), size);
	assert_int_equal(cm_get_accept(bytes, size, &in), 1);
	assert_true(in.wants_confirmation);
	assert_int_equal(in.size, 64);
	bytes[4]++; /* of another version */
	assert_int_equal(cm_get_accept(bytes, size, &in), -1);
	bytes[0]++; /* of another kind */
	assert_int_equal(cm_get_accept(bytes, size, &in), 0);
	for (unsigned reason = CM_REASON_CONSUMER; reason <= CM_REASON_MORE; reason++) {
		size = cm_put_reject((enum cm_reason)reason, NULL, 0, bytes);
		assert_int_equal(cm_get_reject(bytes, size), reason);
		assert_int_equal(cm_get_reject(bytes, size - 1), 0);
	}
	assert_int_equal(cm_get_reject(NULL, 0), 0);
}

/*
 * CONN-GEN-08 CONN-GEN-10 IWCM-06: the same on every host and in every version. The sum over 10,000
 * qualifiers of all sizes was computed by another program.
 */
static void port__of_qualifiers__as_written_down(void **state)
{
	uint32_t sum = 0;

	(void)state;
	assert_int_equal(cm_port(1, 0), 1);
	assert_int_equal(cm_port(65535, 0), 65535);
	assert_int_equal(cm_port(65536, 0), 0);
	for (uint64_t qual = 1; qual < 100000; qual += 37) {
		for (unsigned place = 1; place < CM_PORTS; place++) {
			assert_in_range(cm_port(qual, place), 10240, 26623);
			for (unsigned other = 1; other < place; other++)
				assert_int_not_equal(cm_port(qual, place), cm_port(qual, other));
		}
	}
	for (uint64_t i = 1; i <= 10000; i++) {
		for (unsigned place = 0; place < CM_PORTS; place++)
			sum = sum * 31 +
			      cm_port(i * UINT64_C(0x9e3779b97f4a7c15) >> (i % 64), place);
	}
	assert_int_equal(sum, 0x34688a95);
	assert_int_equal(cm_port(UINT64_C(0x1122334455667788), 1), 23598);
	assert_int_equal(cm_port(UINT64_C(0x1122334455667788), 4), 11991);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request__each_size__comes_back),
		cmocka_unit_test(request__known_values__as_written_down),
		cmocka_unit_test(request__unknown_flags__ignored),
		cmocka_unit_test(request__in_two_parts__sizes_are_checked),
		cmocka_unit_test(accept__flags__behind_the_data),
		cmocka_unit_test(accept__longest__fits),
		cmocka_unit_test(answers__known_values__as_written_down),
		cmocka_unit_test(request__that_makes_no_sense__refused),
		cmocka_unit_test(accept__that_makes_no_sense__refused),
		cmocka_unit_test(answers__come_back__and_others_do_not),
		cmocka_unit_test(port__of_qualifiers__as_written_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
