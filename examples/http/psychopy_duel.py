"""Duels between gratings in PsychoPy: which of the two is easier to see?

    python psychopy_duel.py LINK          # a participant's link; needs PsychoPy and askwise

The study has the parameters contrast (0 to 1) and cycles (per degree).  The left and right arrow answer, Down
is "can't decide", Escape ends; whoever comes back with the same link goes on.
"""

import sys

from psychopy import core, event, monitors, visual

import askwise as aw

ANSWERS = {"left": 0, "right": 1, "down": None}
TRIALS = 20


def run(link: str) -> None:
    """Ask so many questions, one screen each."""
    study = aw.Client(link)
    monitor = monitors.Monitor("lab", width=52, distance=60)  # centimetres; measure yours
    monitor.setSizePix((1920, 1080))
    window = visual.Window(units="deg", monitor=monitor, fullscr=True, color=0)
    gratings = [visual.GratingStim(window, mask="gauss", size=4, pos=(side, 0)) for side in (-4, 4)]
    clock = core.Clock()
    for _ in range(TRIALS):
        question = study.ask()
        for grating, option in zip(gratings, question.options, strict=True):
            grating.contrast, grating.sf = option["contrast"], option["cycles"]
            grating.draw()
        window.callOnFlip(clock.reset)
        window.flip()
        [(key, seconds)] = event.waitKeys(keyList=[*ANSWERS, "escape"], timeStamped=clock)[:1]
        if key == "escape":
            break
        study.tell(question, ANSWERS[key], seconds=seconds)
        window.flip()
        core.wait(0.5)
    window.close()


if __name__ == "__main__":
    run(sys.argv[1])
