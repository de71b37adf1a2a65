"""A Qt Quick scene that draws some frames: shapes, text, a layer with an effect, and an animation."""

import sys

from PySide6.QtCore import QTimer, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtQml import QQmlComponent, QQmlEngine
from PySide6.QtQuick import QQuickView

FRAMES = 60

SCENE = b"""
import QtQuick
Rectangle {
    width: 320; height: 240; color: "white"
    Rectangle {
        width: 80; height: 80; color: "green"; opacity: 0.7; radius: 10
        NumberAnimation on x { from: 0; to: 200; duration: 500; loops: Animation.Infinite }
        RotationAnimation on rotation { from: 0; to: 360; duration: 700; loops: Animation.Infinite }
        layer.enabled: true
    }
    Text { anchors.centerIn: parent; text: "frames"; font.pixelSize: 40 }
    Image { y: 160; width: 64; height: 64; source: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>" }
}
"""


def main():
    app = QGuiApplication(sys.argv)
    view = QQuickView()
    engine = view.engine()
    component = QQmlComponent(engine)
    component.setData(SCENE, QUrl())
    item = component.create()
    assert item, component.errorString()
    view.setContent(QUrl(), component, item)
    view.resize(320, 240)
    frames = 0

    def swapped():
        nonlocal frames
        frames += 1
        if frames == FRAMES:
            app.quit()

    view.frameSwapped.connect(swapped)
    view.show()
    QTimer.singleShot(40_000, app.quit)
    app.exec()
    print(view.rendererInterface().graphicsApi(), frames)


main()
