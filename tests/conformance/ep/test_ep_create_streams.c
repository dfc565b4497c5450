// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which streams may share an EVD. Receive completions of a SOLICITED_WAIT endpoint share it only
 * with streams of the same kind; all other streams may share one. Each pair of streams is tried in
 * both orders.
 */
#include "ep_lab.h"

enum stream {
	RECV_DEFAULT,
	RECV_THRESHOLD,
	REQUEST_DEFAULT,
	REQUEST_THRESHOLD,
	CONNECTION,
	PSP,
	RSP,
	ASYNC,
	RECV_UNSIGNALLED,
	REQUEST_UNSIGNALLED,
	RECV_SOLICITED,
	STREAMS,
};

static bool go_together(enum stream first, enum stream second)
{
	return (first == RECV_SOLICITED) == (second == RECV_SOLICITED);
}

/* What attaches a stream to an EVD, and what must be freed to detach it. */
struct tie {
	enum stream stream;
	DAT_HANDLE object;
	DAT_EP_HANDLE reserved;
};

static DAT_RETURN attach_ep(struct ep_lab *lab, struct tie *tie, DAT_EVD_HANDLE evd)
{
	DAT_EVD_HANDLE recv = DAT_HANDLE_NULL, request = DAT_HANDLE_NULL, conn = DAT_HANDLE_NULL;
	DAT_EP_ATTR attr;

	dt_ep_attr(&lab->ia, &attr);
	switch (tie->stream) {
	case RECV_THRESHOLD:
		attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
		break;
	case RECV_UNSIGNALLED:
		attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		break;
	case RECV_SOLICITED:
		attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		break;
	case REQUEST_THRESHOLD:
		attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
		break;
	case REQUEST_UNSIGNALLED:
		attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		break;
	default:
		break;
	}
	if (tie->stream == CONNECTION)
		conn = evd;
	else if (tie->stream == REQUEST_DEFAULT || tie->stream == REQUEST_THRESHOLD ||
		 tie->stream == REQUEST_UNSIGNALLED)
		request = evd;
	else
		recv = evd;
	if (!recv)
		attr.max_recv_dtos = 0;
	if (!request)
		attr.max_request_dtos = 0;
	return dat_ep_create(lab->ia.ia, lab->ia.pz, recv, request, conn, &attr, &tie->object);
}

static DAT_RETURN attach_rsp(struct ep_lab *lab, struct tie *tie, DAT_EVD_HANDLE evd)
{
	DAT_RETURN ret;
	int tries = 0;

	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, lab->ep.conn,
			    NULL, &tie->reserved));
	do {
		ret = dat_rsp_create(lab->ia.ia, ep_free_qual(&lab->ia), tie->reserved, evd,
				     &tie->object);
	} while (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE && ++tries < 100);
	if (ret != DAT_SUCCESS)
		dt_ok(dat_ep_free(tie->reserved));
	return ret;
}

static DAT_RETURN attach(struct ep_lab *lab, struct tie *tie, enum stream stream,
			 DAT_EVD_HANDLE evd)
{
	DAT_CONN_QUAL qual;

	memset(tie, 0, sizeof(*tie));
	tie->stream = stream;
	switch (stream) {
	case PSP:
		return dat_psp_create_any(lab->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG,
					  &tie->object);
	case RSP:
		return attach_rsp(lab, tie, evd);
	case ASYNC:
		return dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 1, &evd, &tie->object);
	default:
		return attach_ep(lab, tie, evd);
	}
}

static void detach(struct tie *tie)
{
	switch (tie->stream) {
	case PSP:
		dt_ok(dat_psp_free(tie->object));
		break;
	case RSP:
		dt_ok(dat_rsp_free(tie->object));
		dt_ok(dat_ep_free(tie->reserved));
		break;
	case ASYNC:
		dt_ok(dat_ia_close(tie->object, DAT_CLOSE_GRACEFUL_FLAG));
		break;
	default:
		dt_ok(dat_ep_free(tie->object));
	}
}

/* Returns the parameter of the call in attach() that names the wrong EVD. */
static DAT_RETURN_SUBTYPE wrong_argument(enum stream stream)
{
	if (stream == PSP || stream == ASYNC)
		return DAT_INVALID_ARG3;
	return stream == RSP ? DAT_INVALID_ARG4 : DAT_INVALID_ARG6;
}

static void check_pair(struct ep_lab *lab, enum stream first, enum stream second)
{
	DAT_EVD_HANDLE evd =
		dt_evd_create(&lab->ia, 64, DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG);
	struct tie a, b;
	DAT_RETURN ret;

	dt_ok(attach(lab, &a, first, evd));
	ret = attach(lab, &b, second, evd);
	if (go_together(first, second)) {
		if (ret != DAT_SUCCESS)
			print_error("streams %d, %d: %s\n", first, second, dt_strerror(ret));
		dt_ok(ret);
		detach(&b);
	} else {
		if (DAT_GET_TYPE(ret) != DAT_INVALID_PARAMETER)
			print_error("streams %d, %d: %s\n", first, second, dt_strerror(ret));
		dt_fails_with(ret, DAT_INVALID_PARAMETER, wrong_argument(second));
	}
	/* the reference ends with its object; a refused call takes none */
	detach(&a);
	dt_ok(attach(lab, &b, second, evd));
	detach(&b);
	dt_ok(dat_evd_free(evd));
}

/* EP-CREATE-71 EP-CREATE-73 EP-CREATE-74 EP-CREATE-75 EP-CREATE-83 EP-GEN-05 */
static void evd__every_pair_of_streams__solicited_ones_refused(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (int first = 0; first < STREAMS; first++) {
		for (int second = 0; second < STREAMS; second++)
			check_pair(lab, (enum stream)first, (enum stream)second);
	}
}

/* EP-CREATE-83: flags of the EVD and software events do not matter */
static void evd__all_flags_and_software_events__takes_any_first_stream(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (int stream = 0; stream < STREAMS; stream++) {
		DAT_EVD_HANDLE evd =
			dt_evd_create(&lab->ia, 64, DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG);
		DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
		struct tie tie;

		dt_ok(dat_evd_post_se(evd, &event));
		dt_ok(attach(lab, &tie, (enum stream)stream, evd));
		dt_ok(dat_evd_post_se(evd, &event));
		detach(&tie);
		dt_ok(dat_evd_free(evd));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(evd__every_pair_of_streams__solicited_ones_refused),
		ep_test(evd__all_flags_and_software_events__takes_any_first_stream),
	};

	return cmocka_run_group_tests_name("ep_create_streams", tests, NULL, NULL);
}
