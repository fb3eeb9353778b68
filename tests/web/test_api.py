"""The HTTP API does what Study does, and refuses in words."""

import askwise as aw
from askwise.study import load
from served import DUEL

HALL = "/api/v1/studies/hall"


def test_the_api_asks_what_a_study_asks_bit_for_bit(owner):
    plan = load(DUEL).plan()
    study = aw.Study.of(plan)
    for number in range(8):
        sent = owner.post(f"{HALL}/ask", json={}).json()
        question = study.ask()
        assert (sent["id"], sent["options"], tuple(sent["order"])) == (
            question.id,
            question.options,
            question.order,
        )
        answer = None if number == 5 else int(question.options[1]["gain"] > question.options[0]["gain"])
        done = owner.post(f"{HALL}/tell", json={"question": number, "answer": answer, "seconds": 1.5})
        assert done.status_code == 200, done.text
        study.tell(question, answer, seconds=1.5)
    assert owner.get(f"{HALL}/best").json() == vars(study.best())
    status = owner.get(f"{HALL}/status").json()
    assert (status["answers"], status["gain"], status["hint"]) == (
        8,
        study.status().gain,
        study.status().hint,
    )
    setting = {"gain": 10.0, "mode": "soft"}
    predicted = owner.post(f"{HALL}/predict", json={"settings": [setting]}).json()
    assert predicted[0]["mean"] == study.predict(setting)[0].mean
    assert [one["params"] for one in owner.get(f"{HALL}/top?k=3").json()] == [
        one.params for one in study.top(3)
    ]
